"""``python -m heron_testing.seeded``: simulates topologies from seeds; ``./dev simulate`` calls it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from heron_testing.seeded.clocks import install


def main() -> int:
    """Runs the seeds that the arguments name; returns 1 if an invariant failed."""
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds")
    parser.add_argument("--trace", action="store_true", help="print every event of the runs")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--state", action="store_true", help="effectively once, with checkpoints")
    parser.add_argument("--code", action="store_true", help="with a change of the code in each run")
    parser.add_argument("--each", action="store_true", help="print the hash of each run")
    parser.add_argument("--first", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--keep", type=_numbers, help="only these faults of the seed, such as 1,3; 0 for none")
    parser.add_argument("--minutes", type=float, default=0.0, help="simulated minutes of each run, with little data")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "heron_testing.seeded", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - itself
    install()
    from heron_testing.seeded.forked_run import ForkedRuns, warm_up  # noqa: PLC0415 - after the clock
    from heron_testing.seeded.shrinking import shrink  # noqa: PLC0415
    from heron_testing.seeded.simulation import draw_code_scenario, draw_scenario  # noqa: PLC0415

    warm_up()
    began_s, simulated_s, failed = sum(os.times()[:4]), 0.0, 0
    with ForkedRuns(keeps_trace=arguments.trace) as runs:
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            if arguments.code:
                scenario = draw_code_scenario(seed, with_state=arguments.state)
            else:
                calm, minutes = arguments.calm, arguments.minutes
                scenario = draw_scenario(seed, with_state=arguments.state, calm=calm, minutes=minutes)
            drawn = scenario.faults
            if arguments.keep is not None:
                kept = tuple(each for number, each in enumerate(drawn, 1) if number in arguments.keep)
                scenario = replace(scenario, faults=kept)
            outcome = runs.run(scenario)
            simulated_s += outcome.lasted_s
            for line in outcome.trace:
                print(line)
            if outcome.problems:
                failed += 1
                print(f"seed {seed} fails:", *outcome.problems, sep="\n  ")
                if arguments.first:
                    break
                if arguments.keep is None:
                    shown = shrink(scenario, runs.run).scenario.faults
                    numbers = ",".join(str(drawn.index(each) + 1) for each in shown) or "0"
                    print("  with:", *shown, sep="\n    ")
                    print(f"  repeat it: ./dev simulate -- {_mode(arguments)}--seed {seed} --keep {numbers} --trace")
            if arguments.each or arguments.runs == 1:
                print(f"seed {seed}: {outcome.lasted_s:.3f} s, {outcome.events} events, trace {outcome.trace_hash}")
    took_s = sum(os.times()[:4]) - began_s
    summary = f"{arguments.runs} runs, {failed} failed; {simulated_s:.0f} s simulated in {took_s:.1f} s of a processor"
    print(summary, file=sys.stderr if arguments.trace else sys.stdout)  # a trace repeats to the byte
    return int(failed > 0)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


def _mode(arguments: argparse.Namespace) -> str:
    minutes = f"--minutes {arguments.minutes:g} " if arguments.minutes else ""
    return ("--state " if arguments.state else "") + ("--code " if arguments.code else "") + minutes


if __name__ == "__main__":
    sys.exit(main())
