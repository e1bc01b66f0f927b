"""``python -m chaos --minutes M --seed S``: print one line of JSON. Exit code 0: nothing was lost or left over."""

from __future__ import annotations

import logging
import signal
import sys

import click

from chaos.campaign import Campaign
from chaos.chaos_run import ChaosRun
from chaos.errors import ChaosError
from chaos.fault_plan import Action, fault_plan
from chaos.oracle import Verdict, judge
from chaos.outcome import Outcome
from heron.clock import monotonic_s

_INTERRUPTED = 143


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Duration.")
@click.option("--seed", type=int, default=1, show_default=True, help="Selects the plan of faults.")
@click.option(
    "--rate", type=click.IntRange(min=1), default=25_000, show_default=True, help="Lines a second of all spouts."
)
@click.option("-v", "--verbose", is_flag=True, help="Log each fault and each recovery time to stderr.")
def main(minutes: float, seed: int, rate: int, *, verbose: bool) -> None:
    """Kill and stop random processes of a topology under load, and account for every line."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # SIGTERM must also end the running topology
    chaos_run = ChaosRun(rate)
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
    campaign = Campaign(chaos_run)
    problems: list[str] = []
    verdict: Verdict | None = None
    began_s = monotonic_s()
    flowed_s = 0.0
    try:
        with chaos_run:
            campaign.run(plan)
            flowed_s = monotonic_s() - began_s
            chaos_run.stop_spouts()
            # A process that dies during the end must not prevent the end.
            campaign.inject(next(fault for fault in plan if fault.action is Action.KILL))
            chaos_run.wait_for_end()
            verdict = judge(chaos_run.files)
    except ChaosError as error:
        problems.append(str(error))
    finally:
        campaign.close()
    return Outcome(seed, minutes, campaign, verdict, flowed_s, chaos_run.remaining(), problems)


if __name__ == "__main__":
    main()
