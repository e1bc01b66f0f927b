"""``python -m checks``: the sections behind ``./dev quick`` and ``./dev test``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from checks.sections import Result, Section, run_beside, summary
from heron.clock import monotonic_s

_ROOT = Path(__file__).resolve().parents[1]
_WORKERS = 2  # on more cores the tests that hold a topology would only wait for each other
_CHOSEN = "not chaos and not soak and not servers and not matrix"
_PATHS = ("heron-core/tests", "plugins", "tests")


@click.group()
def main() -> None:
    """Run checks of this repository."""


@main.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...]) -> None:
    """Run lint and types, the tests of all packages, and one end-to-end test for each guarantee."""
    began_s = monotonic_s()
    beside = [
        _nox("lint"),
        _nox("types"),
        _pytest("tests", f"{_CHOSEN} and not pace", "-n", str(_WORKERS), "--dist", "worksteal", *_PATHS, *arguments),
    ]
    results = run_beside(beside, _ROOT, click.echo)
    results += run_beside([_pytest("pace", f"{_CHOSEN} and pace", *_PATHS, *arguments)], _ROOT, click.echo)
    _end(results, began_s)


def _end(results: list[Result], began_s: float) -> None:
    click.echo(summary(results))
    click.echo(f"all sections: {monotonic_s() - began_s:.0f} s")
    sys.exit(0 if all(each.code == 0 for each in results) else 1)


def _nox(session: str) -> Section:
    return Section(session, (sys.executable, "-m", "nox", "-f", str(_ROOT / "noxfile.py"), "-s", session))


def _pytest(name: str, marked: str, *arguments: str) -> Section:
    command = (sys.executable, "-m", "pytest", "-q", "-p", "checks.progress", "-m", marked, *arguments)
    return Section(name, command, live=True)


if __name__ == "__main__":
    main()
