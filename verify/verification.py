"""One call of the command: reads keys and records, runs the suites whose turn it is, records the green ones."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import click

from heron.clock import monotonic_s, wall_s
from verify.keys import Key, KeyFinder
from verify.records import Record, Records
from verify.suite_run import Outcome, SuiteRunner, run_side_by_side
from verify.suites import Suite
from verify.turn import Standing, Turn, standing
from verify.versions import platform_name, python_name, server_versions
from verify.workspace import Workspace

__all__ = ["Verification"]


class Verification:
    """One call of the command, for the repository at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workspace = Workspace(root)
        self._finder = KeyFinder(self._workspace)
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
        return [standing(name, self._key(name), records.get(name)) for name in wanted]

    def print_list(self, chosen: list[Standing]) -> None:
        """Prints one line for each suite."""
        for each in chosen:
            key = self._key(each.suite).value
            click.echo(f"{each.suite:40} {key[:12]}  {each.state.value:12}  {each.reason}")

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
        for each in chosen:
            if each.suite in left:
                click.echo(f"left   {each.suite}: {each.reason}; the budget has no room for it, so it stays stale")
            elif each.suite not in self._handed_out:
                click.echo(f"skip   {each.suite}: {each.reason}")
        if self._failed:
            click.echo(f"failed: {', '.join(sorted(self._failed))}")
        return not self._failed

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
        if KeyFinder(Workspace(self._root)).key(suite).value != key.value:
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
            )
        )
        return "green"

    def _key(self, name: str) -> Key:
        if name not in self._keys:
            self._keys[name] = self._finder.key(self._suites[name])
        return self._keys[name]
