"""``python -m chaos --minutes M --seed S``: print one line of JSON. Exit code 0: nothing was lost or left over."""

from __future__ import annotations

import logging
import signal
import sys

import click

from chaos.campaign import Campaign
from chaos.chaos_run import ChaosRun
from chaos.committed import CommittedVerdict, judge_committed
from chaos.errors import ChaosError
from chaos.fault_plan import Action, fault_plan
from chaos.mode import Mode
from chaos.oracle import Verdict, judge
from chaos.outcome import Outcome
from chaos.update_plan import update_plan
from chaos.updates import Updates
from heron.clock import monotonic_s

_INTERRUPTED = 143
_RATES = {Mode.AT_LEAST_ONCE: 25_000, Mode.EFFECTIVELY_ONCE: 10_000}


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Duration.")
@click.option("--seed", type=int, default=1, show_default=True, help="Selects the plan of faults.")
@click.option(
    "--mode",
    "mode_name",
    type=click.Choice([each.value for each in Mode]),
    default=Mode.AT_LEAST_ONCE.value,
    show_default=True,
    help="The guarantee of delivery that is checked.",
)
@click.option("--updates", is_flag=True, help="Change the parallelism of components every 20 s.")
@click.option("--state", is_flag=True, help="At least once, count in state that is saved every second.")
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    help="Lines a second of all spouts.  [default: 25000; 10000 with effectively-once]",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each fault and each recovery time to stderr.")
def main(
    minutes: float, seed: int, mode_name: str, rate: int | None, *, updates: bool, state: bool, verbose: bool
) -> None:
    """Kill and stop random processes of a topology under load, and account for every line."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # SIGTERM must also end the running topology
    mode = Mode(mode_name)
    chaos_run = ChaosRun(rate or _RATES[mode], mode=mode, updates=updates, state=state)
    try:
        outcome = _run(chaos_run, seed, minutes)
    except BaseException:
        chaos_run.remove()
        raise
    click.echo(outcome.json())
    if outcome.passed:
        chaos_run.remove()
    else:
        click.echo(f"failed; logs and files of the run: {chaos_run.root}", err=True)
    sys.exit(0 if outcome.passed else 1)


def _run(chaos_run: ChaosRun, seed: int, minutes: float) -> Outcome:
    plan = fault_plan(seed, minutes * 60)
    updates = Updates(chaos_run, update_plan(seed, minutes * 60, chaos_run.mode)) if chaos_run.updates else None
    campaign = Campaign(chaos_run, updates)
    problems: list[str] = []
    verdict: Verdict | CommittedVerdict | None = None
    checkpoints: dict[str, object] = {}
    began_s = monotonic_s()
    flowed_s = 0.0
    try:
        with chaos_run:
            if updates is not None:
                updates.start()
            campaign.run(plan)
            if updates is not None:
                updates.close()
                problems += updates.problems
            if chaos_run.state_is_kept:
                checkpoints = chaos_run.checkpoints()
            flowed_s = monotonic_s() - began_s
            chaos_run.stop_spouts()
            # A process that dies during the end must not prevent the end.
            campaign.inject(next(fault for fault in plan if fault.action is Action.KILL))
            chaos_run.wait_for_end()
            at_least_once = chaos_run.mode is Mode.AT_LEAST_ONCE
            verdict = judge(chaos_run.files) if at_least_once else judge_committed(chaos_run.files)
    except ChaosError as error:
        problems.append(str(error))
    finally:
        campaign.close()
    return Outcome(seed, minutes, campaign, verdict, flowed_s, chaos_run.remaining(), problems, checkpoints)


if __name__ == "__main__":
    main()
