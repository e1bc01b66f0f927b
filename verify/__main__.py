"""``python -m verify``: runs the suites that need servers and have no valid record, and records the green ones."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from verify.turn import Turn
from verify.verification import Verification

_ROOT = Path(__file__).resolve().parents[1]
_INTERRUPTED = 143


@click.command()
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@click.option("--list", "lists", is_flag=True, help="Print the suites with their keys and states; run nothing.")
@click.option("--inputs", is_flag=True, help="Print the files that the named suites depend on; run nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Run every suite, and remove records of suites that no longer exist."
)
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0),
    help="Seconds: leave a suite of which only the core changed if it would end later (default: no limit).",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="How many suites run at the same time."
)
def main(
    names: tuple[str, ...], lists: bool, inputs: bool, everything: bool, budget_s: float | None, jobs: int
) -> None:
    """Run the suites that need servers and have no valid record, then one valid suite in turn.

    With names, run these suites only. A suite passes only if all its servers can be installed.
    """
    verification = Verification(_ROOT)
    chosen = verification.chosen(names)
    if lists:
        verification.print_list(chosen)
    elif inputs:
        verification.print_inputs(chosen)
    else:
        if everything:
            verification.prune()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # so that what runs is ended
        turn = Turn(chosen, budget_s, everything=everything or bool(names))
        sys.exit(0 if verification.run(turn, chosen, jobs) else 1)


if __name__ == "__main__":
    main()
