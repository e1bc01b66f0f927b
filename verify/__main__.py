"""``python -m verify``: runs the suites that have no valid record, and records the green ones."""

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
@click.option("--list", "report", flag_value="list", help="Print the suites with times and states; run nothing.")
@click.option("--inputs", "report", flag_value="inputs", help="Print the inputs of the suites; run nothing.")
@click.option("--debt", "report", flag_value="debt", help="Print in one line how many have not run; run nothing.")
@click.option("--release", "report", flag_value="release", help="Fail unless all have run; run nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Run every suite, and remove records of suites that no longer exist."
)
@click.option(
    "--budget-s", type=click.FloatRange(min=0), help="Seconds: leave a suite that would end later (default: no limit)."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="How many suites run at the same time."
)
def main(names: tuple[str, ...], report: str | None, everything: bool, budget_s: float | None, jobs: int) -> None:
    """Run the suites that have no valid record, then one valid suite in turn.

    With names, run these suites only. A suite passes only if all its servers can be installed.
    """
    verification = Verification(_ROOT)
    chosen = verification.chosen(names)
    match report:
        case "list":
            verification.print_list(chosen)
        case "inputs":
            verification.print_inputs(chosen)
        case "debt":
            verification.print_debt(chosen)
        case "release":
            sys.exit(0 if verification.print_release(chosen) else 1)
        case _:
            if everything:
                verification.prune()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # so that what runs is ended
            turn = Turn(chosen, budget_s, everything=everything or bool(names))
            sys.exit(0 if verification.run(turn, chosen, jobs) else 1)


if __name__ == "__main__":
    main()
