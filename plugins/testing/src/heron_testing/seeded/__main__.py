"""``python -m heron_testing.seeded``: simulates topologies from seeds; ``./dev simulate`` calls it."""

from __future__ import annotations

import argparse
import os
import sys

from heron_testing.seeded.clocks import install


def main() -> int:
    """Runs the seeds that the arguments name; returns 1 if an invariant failed."""
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds")
    parser.add_argument("--trace", action="store_true", help="print every event of the runs")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--state", action="store_true", help="effectively once, with checkpoints")
    parser.add_argument("--each", action="store_true", help="print the hash of each run")
    parser.add_argument("--first", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--minutes", type=float, default=0.0, help="simulated minutes of each run, with little data")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "heron_testing.seeded", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - itself
    install()
    from heron_testing.seeded.forked_run import ForkedRuns, warm_up  # noqa: PLC0415 - after the clock
    from heron_testing.seeded.shrinking import shrink  # noqa: PLC0415
    from heron_testing.seeded.simulation import draw_scenario  # noqa: PLC0415

    warm_up()
    began_s, simulated_s, failed = sum(os.times()[:4]), 0.0, 0
    with ForkedRuns(keeps_trace=arguments.trace) as runs:
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            scenario = draw_scenario(seed, with_state=arguments.state, calm=arguments.calm, minutes=arguments.minutes)
            outcome = runs.run(scenario)
            simulated_s += outcome.lasted_s
            for line in outcome.trace:
                print(line)
            if outcome.problems:
                failed += 1
                print(f"seed {seed} fails:", *outcome.problems, sep="\n  ")
                if arguments.first:
                    break
                print("  with:", *shrink(outcome.scenario, runs.run).scenario.faults, sep="\n    ")
                mode = "--state " if arguments.state else ""
                print(f"  repeat it: ./dev simulate -- {mode}--seed {seed} --trace")
            if arguments.each or arguments.runs == 1:
                print(f"seed {seed}: {outcome.lasted_s:.3f} s, {outcome.events} events, trace {outcome.trace_hash}")
    took_s = sum(os.times()[:4]) - began_s
    print(f"{arguments.runs} runs, {failed} failed; {simulated_s:.0f} s simulated in {took_s:.1f} s of a processor")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
