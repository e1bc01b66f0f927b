"""One call of the command: reads keys and records, runs the suites whose turn it is, records the green ones."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import click

from heron.clock import monotonic_s, wall_s
from verify.history import read_history
from verify.keys import Key, KeyFinder
from verify.records import Record, Records
from verify.suite_run import Outcome, SuiteRunner, run_side_by_side
from verify.suites import Suite
from verify.turn import MOST_BEHIND, Standing, State, Turn, standing
from verify.versions import platform_name, python_name, server_versions
from verify.workspace import Workspace

__all__ = ["Verification"]

_CACHE = ".nox/verify"


class Verification:
    """One call of the command, for the repository at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workspace = Workspace(root)
        self._finder = self._new_finder()
        self._history = read_history(root)
        self._suites = {each.name: each for each in self._finder.suites}
        self._keys: dict[str, Key] = {}
        self._records = Records(root / "verify" / "results")
        self._runner = SuiteRunner(root)
        self._lock = threading.Lock()
        self._failed: list[str] = []
        self._handed_out: set[str] = set()
        self._began_s = monotonic_s()

    def chosen(self, names: tuple[str, ...]) -> list[Standing]:
        """The suites of these names, or all."""
        unknown = [name for name in names if name not in self._suites]
        if unknown:
            msg = f"no suite {unknown[0]!r}; known: {', '.join(self._suites)}"
            raise click.UsageError(msg)
        records = self._records.read()
        wanted = names or tuple(self._suites)
        found = [self._standing(name, records.get(name)) for name in wanted]
        self._finder.sources.save()
        return found

    def print_list(self, chosen: list[Standing]) -> None:
        """Prints one line for each suite, and the debt."""
        for each in chosen:
            key = self._key(each.suite).value
            seconds = f"{each.record.seconds:.0f} s" if each.record else "?"
            behind = f"{each.behind} behind" if each.record else ""
            click.echo(
                f"{each.suite:34} {key[:12]} {seconds:>6}  {each.state.value:12} {behind:>10}  {each.reason}".rstrip()
            )
        self.print_debt(chosen)

    def print_debt(self, chosen: list[Standing]) -> None:
        """Prints in one line how many suites have not run for the present code, and since when."""
        stale = _stale(chosen)
        never = sum(each.state is State.NEVER for each in stale)
        parts = [f"{len(stale)} of {len(chosen)} suites not run for the present code"]
        if never < len(stale):
            parts.append(f"the oldest {max(each.behind for each in stale)} commits ago")
        if never:
            parts.append(f"{never} never")
        click.echo(", ".join(parts) + (": ./dev verify -- --list" if stale else ""))

    def print_release(self, chosen: list[Standing]) -> bool:
        """Prints the suites that a release waits for; returns whether there is none."""
        stale = _stale(chosen)
        for each in stale:
            click.echo(f"not run for the present code: {each.suite}: {each.reason}")
        self.print_debt(chosen)
        return not stale

    def print_inputs(self, chosen: list[Standing]) -> None:
        """Prints what the key of each suite is made of."""
        for each in chosen:
            key = self._key(each.suite)
            click.echo(f"{each.suite} {key.value}")
            for group, paths in key.files.items():
                for path in paths:
                    click.echo(f"  {group:9} {path}")
            for name, version in key.libraries.items():
                click.echo(f"  libraries {name}=={version}")

    def prune(self) -> None:
        """Removes the records of suites that no longer exist."""
        for name in self._records.remove_others(set(self._suites)):
            click.echo(f"remove {name}: no such suite")

    def run(self, turn: Turn, chosen: list[Standing], jobs: int) -> bool:
        """Runs what the turn hands out; returns whether all of it was green."""
        self._began_s = monotonic_s()
        run_side_by_side(jobs, lambda: self._run_next(turn), self._runner.stop)
        left = {each.suite for each in turn.left}
        overdue = [each.suite for each in turn.left if each.overdue]
        for each in chosen:
            if each.suite in left:
                click.echo(f"left   {each.suite}: {each.reason}; the budget has no room for it, so it stays stale")
            elif each.suite not in self._handed_out:
                click.echo(f"skip   {each.suite}: {each.reason}")
        if self._failed:
            click.echo(f"failed: {', '.join(sorted(self._failed))}")
        if overdue:
            click.echo(f"overdue, and the budget has no room: {', '.join(overdue)}")
            click.echo(f"Inputs of these changed more than {MOST_BEHIND} commits ago; commit the records of")
            click.echo(f"    ./dev verify -- {' '.join(overdue)}")
        return not self._failed and not overdue

    def _run_next(self, turn: Turn) -> bool:
        with self._lock:
            each = turn.take(monotonic_s() - self._began_s)
            if each is None:
                return False
            self._handed_out.add(each.suite)
            click.echo(f"run    {each.suite}: {each.reason}")
        suite = self._suites[each.suite]
        outcome = self._runner.run(suite)
        note = self._record(suite, outcome) if outcome.green else "failed"
        with self._lock:
            if not outcome.green:
                self._failed.append(suite.name)
                click.echo(outcome.output)
            click.echo(f"{note:6} {suite.name}: {outcome.passed} passed, {outcome.seconds:.0f} s")
        return True

    def _record(self, suite: Suite, outcome: Outcome) -> str:
        """Records a green run, unless its inputs changed meanwhile; returns the word for the line of output."""
        key = self._key(suite.name)
        if self._new_finder(Workspace(self._root)).key(suite).value != key.value:
            return "green, not recorded because its inputs changed during the run:"
        servers = ((path, self._workspace.text(path)) for path in key.files["servers"])
        now = datetime.fromtimestamp(wall_s(), UTC)
        self._records.write(
            Record(
                suite=suite.name,
                key=key.value,
                when=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                seconds=outcome.seconds,
                passed=outcome.passed,
                skipped=outcome.skipped,
                python=python_name(),
                platform=platform_name(),
                servers=server_versions(servers),
                libraries=key.libraries,
                inputs=key.groups,
                revision=self._history.head,
            )
        )
        return "green"

    def _new_finder(self, workspace: Workspace | None = None) -> KeyFinder:
        return KeyFinder(workspace or self._workspace, cache=self._root / _CACHE)

    def _standing(self, name: str, record: Record | None) -> Standing:
        key = self._key(name)
        if record is None or record.key == key.value:
            return standing(name, key, record)
        inputs = {path for paths in key.files.values() for path in paths}
        return standing(name, key, record, self._history.behind(record, inputs))

    def _key(self, name: str) -> Key:
        if name not in self._keys:
            self._keys[name] = self._finder.key(self._suites[name])
        return self._keys[name]


def _stale(chosen: list[Standing]) -> list[Standing]:
    return [each for each in chosen if each.state is not State.VALID]
