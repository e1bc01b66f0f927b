"""``python -m chaos --minutes M --seed S``: prints one line of JSON; exit code 0 when nothing was lost or left over."""

from __future__ import annotations

import logging
import signal
import sys

import click

from chaos.campaign import Campaign
from chaos.errors import ChaosError
from chaos.fault_plan import Action, fault_plan
from chaos.oracle import Verdict, judge
from chaos.outcome import Outcome
from chaos.world import World
from heron.clock import monotonic_s

_INTERRUPTED = 143


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="How long it goes on.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses what is done, to whom, when.")
@click.option(
    "--rate", type=click.IntRange(min=1), default=25_000, show_default=True, help="Lines a second that spouts make."
)
@click.option("-v", "--verbose", is_flag=True, help="Says on stderr what is done, and how long each recovery took.")
def main(minutes: float, seed: int, rate: int, *, verbose: bool) -> None:
    """Kills and stops random processes of a topology under load, and looks for every line of it."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # so that what runs is ended
    world = World(rate)
    try:
        outcome = _run(world, seed, minutes)
    except BaseException:
        world.remove()
        raise
    click.echo(outcome.json())
    if outcome.passed:
        world.remove()
    else:
        click.echo(f"failed; logs and files of the run: {world.root}", err=True)
    sys.exit(0 if outcome.passed else 1)


def _run(world: World, seed: int, minutes: float) -> Outcome:
    plan = fault_plan(seed, minutes * 60)
    campaign = Campaign(world)
    problems: list[str] = []
    verdict: Verdict | None = None
    began_s = monotonic_s()
    flowed_s = 0.0
    try:
        with world:
            campaign.run(plan)
            flowed_s = monotonic_s() - began_s
            world.say_stop()
            # Whatever the end is in the middle of: a process that dies then must not keep it.
            campaign.strike(next(fault for fault in plan if fault.action is Action.KILL))
            world.wait_for_end()
            verdict = judge(world.files)
    except ChaosError as error:
        problems.append(str(error))
    finally:
        campaign.close()
    return Outcome(seed, minutes, campaign, verdict, flowed_s, world.leftovers(), problems)


if __name__ == "__main__":
    main()
