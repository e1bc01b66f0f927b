"""Checks of standby topology managers: the leader, the topology managers, and whether data flows on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from heron.clock import monotonic_s
from heron.errors import StateError
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.tmanager_location import decode_tmanager_location

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["Leader", "StandbyRun", "has_ended"]

_STILL_S = 5.0  # if no tuple arrives for this time on a busy machine, data has stopped


@dataclass(frozen=True)
class Leader:
    """A leader."""

    container_id: int
    pid: int
    epoch: int


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended; it may end during the question."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class StandbyRun:
    """A run of ``steady.py`` with standbys, and its state."""

    def __init__(self, sandbox: Sandbox, state: StateManager, *options: str, standbys: int = 2) -> None:
        self.sandbox = sandbox
        self.state = state
        self._options = options
        self.run: HeronRun = sandbox.start("steady.py", *options, "--set", f"topology.tmanager.standbys={standbys}")
        self.flows("at the start")
        self.until(lambda: len(self.managers()) == standbys + 1, "every topology manager runs")

    def leader(self) -> Leader | None:
        """Return the present leader; None if there is none or the state does not answer."""
        try:
            node = self.state.get(NodeKind.TMANAGER_LOCATION, "steady")
        except StateError:
            return None
        location = decode_tmanager_location(node.value, "steady") if node else None
        return Leader(location.container_id, location.pid, node.version) if location and node else None

    def present(self) -> Leader:
        """Wait for a leader and return it."""
        self.until(lambda: self.leader() is not None, "a leader")
        leader = self.leader()
        assert leader is not None
        return leader

    def successor(self, former: Leader, what: str) -> tuple[Leader, float]:
        """Wait for another leader while data flows on; return it and the seconds."""
        began_s = monotonic_s()
        found: list[Leader] = []

        def led() -> bool:
            leader = self.leader()
            if leader is not None and leader.epoch > former.epoch:
                found.append(leader)
            return bool(found)

        self.flows_until(led, f"a leader after {what}")
        return found[0], monotonic_s() - began_s

    def managers(self) -> list[psutil.Process]:
        """Return every running topology manager."""
        return self.run.processes("tmanager")

    def seen(self) -> tuple[str, ...]:
        """Return the process that counts, and its count."""
        try:
            return tuple((self.run.out / "progress").read_text(encoding="utf-8").split())
        except OSError:
            return ()

    def flows(self, what: str) -> None:
        """Wait until more tuples arrive."""
        before = self.seen()
        self.run.until(lambda: self.seen() not in (before, ()), f"tuples {what}", 60.0)

    def flows_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; fail when tuples stop arriving before it."""
        last, at_s = self.seen(), monotonic_s()

        def look() -> bool:
            nonlocal last, at_s
            if (now := self.seen()) != last and now:
                last, at_s = now, monotonic_s()
            assert monotonic_s() - at_s < _STILL_S, f"no tuple for {_STILL_S} s while waiting for {what}"
            return bool(condition())

        self.run.until(look, what, 60.0)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition."""
        self.run.until(condition, what, 60.0)

    def status(self) -> dict[str, Any]:
        """Return the output of `heron status`."""
        status: dict[str, Any] = self.sandbox.status_document("steady", *self._options)["status"]
        return status

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return the metrics of the engine's own processes, by name and process."""
        rows = json.loads(self.sandbox.output_of("metrics", "steady", *self._options, "--json"))
        found: dict[str, dict[str, float]] = {}
        for row in rows:
            if not row["task_id"]:
                found.setdefault(row["name"], {})[row["process"]] = row["value"]
        return found

    def finish(self) -> None:
        """End the stream; the topology finishes with all its tuples."""
        (self.run.out / "stop").touch()
        self.run.finished()
