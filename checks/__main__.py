"""``python -m checks``: the sections behind ``./dev quick`` and ``./dev test``."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
from verify.affected import affected_tests
from verify.import_graph import ImportGraph
from verify.source_files import SourceFiles
from verify.verification import Verification
from verify.workspace import Workspace

from checks.choice import first_within, seconds_of_files
from checks.sections import Result, Section, run_beside, summary
from heron.clock import monotonic_s

_ROOT = Path(__file__).resolve().parents[1]
_WORKERS = 3  # of ./dev quick, on two cores
_STEALING = ("--dist", "worksteal", "-n")
_BUDGET_S = 40.0  # of ./dev quick, beside lint and types
_CORE_BUDGET_S = 150.0
_SECONDS = _ROOT / ".pytest_cache" / "v" / "checks" / "seconds"
_CHOSEN = "not chaos and not soak and not servers and not matrix"
_PACE = "mark.pace"
_PATHS = ("heron-core/tests", "plugins", "tests")
_WITH_CORE = ("plugins/cli", "plugins/testing", "plugins/service-tracker")
_BESIDE = 5  # sections of ./dev test on two cores: tests often wait for processes, servers and timers
_TESTED = {str(each.parent.relative_to(_ROOT)) for each in _ROOT.glob("plugins/*/tests")}
_OTHERS = sorted(_TESTED.difference(_WITH_CORE))
_SECTIONS = {
    # Of ./dev test, the longest first. Workers of one section would each collect all of its tests.
    "end to end": ("tests/e2e", "--ignore-glob=tests/e2e/*/test_on_*.py", *_STEALING, "2"),
    "core": ("heron-core/tests",),
    "plugins a to h": tuple(each for each in _OTHERS if each < "plugins/i"),
    "commands": (*_WITH_CORE, "tests", "--ignore=tests/e2e", "--ignore=tests/contract"),
    "plugins i to z": tuple(each for each in _OTHERS if each >= "plugins/i"),
}


@click.group()
def main() -> None:
    """Run checks of this repository."""


@main.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...]) -> None:
    """Run lint and types, the tests of all packages, and one end-to-end test for each guarantee."""
    began_s = monotonic_s()
    tests = [_pytest(name, f"{_CHOSEN} and not pace", *chosen, *arguments) for name, chosen in _SECTIONS.items()]
    pace = _pytest("pace", f"{_CHOSEN} and pace", *_files_of_pace(), *arguments)
    if arguments:
        tests, pace = [replace(each, may_be_empty=True) for each in tests], replace(pace, may_be_empty=True)
    results = run_beside([_nox("lint"), _nox("types"), *tests], _ROOT, click.echo, _BESIDE)
    results += run_beside([pace], _ROOT, click.echo)
    verification = Verification(_ROOT)
    verification.print_debt(verification.chosen(()))
    _end(results, began_s)


@main.command()
@click.option("--since", default="HEAD", help="What differs from this revision counts as changed.")
def quick(since: str) -> None:
    """Run lint and types of the changed files, and the tests that these files reach, the nearest first."""
    began_s = monotonic_s()
    changed = _changed(since)
    if not changed:
        click.echo(f"nothing differs from {since}")
        return
    workspace = Workspace(_ROOT)
    files = SourceFiles(workspace, _ROOT / ".nox" / "verify")
    tests = affected_tests(workspace, ImportGraph(workspace, files), changed)
    files.save()
    budget_s = _CORE_BUDGET_S if any(each.startswith("heron-core/src/") for each in changed) else _BUDGET_S
    seconds = seconds_of_files(json.loads(_SECONDS.read_text()) if _SECONDS.is_file() else {})
    chosen, left = first_within(budget_s * _WORKERS, list(tests), seconds)
    beside = [_nox("lint"), _nox("types", *changed)]
    if chosen:
        beside.append(_pytest("tests", _CHOSEN, *_STEALING, str(_WORKERS), *chosen))
    results = run_beside(beside, _ROOT, click.echo)
    if left:
        click.echo(f"{len(left)} files of tests that the change reaches are left to ./dev test: {' '.join(left)}")
    _end(results, began_s)


def _files_of_pace() -> list[str]:
    """The files that have such a test: to collect all files takes longer than some of these tests."""
    files = (path for folder in _PATHS for path in (_ROOT / folder).rglob("test_*.py"))
    return sorted(str(path.relative_to(_ROOT)) for path in files if _PACE in path.read_text(encoding="utf-8"))


def _changed(since: str) -> list[str]:
    """The files of the working tree that differ from a revision, and those that git does not know yet."""
    commands = (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"])
    texts = [subprocess.check_output(["git", *each], cwd=_ROOT, text=True) for each in commands]  # noqa: S607
    return sorted({line for text in texts for line in text.splitlines()})


def _end(results: list[Result], began_s: float) -> None:
    click.echo(summary(results))
    click.echo(f"all sections: {monotonic_s() - began_s:.0f} s")
    sys.exit(0 if all(each.code == 0 for each in results) else 1)


def _nox(session: str, *arguments: str) -> Section:
    nox = (sys.executable, "-m", "nox", "-f", str(_ROOT / "noxfile.py"), "-s", session)
    return Section(session, (*nox, "--", *arguments) if arguments else nox)


def _pytest(name: str, marked: str, *arguments: str) -> Section:
    plugins = ("-p", "checks.progress", "-p", "checks.collection", "-p", "checks.examples")
    pytest = (sys.executable, "-m", "pytest", "-q", *plugins, "--section", name, "-m", marked)
    return Section(name, (*pytest, *arguments), live=True)


if __name__ == "__main__":
    main()
