"""A run of a program of the connector suites: records are put, let through, and awaited; processes are killed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron.clock import monotonic_s
from heron_testing.connectors.gated_source import GATE
from heron_testing.connectors.programs import READ, WRITE
from heron_testing.connectors.records import POISON, Record

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.connectors.feeds import SourceFeed
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["FAULTS", "Feeding", "Flow"]

_STEP = 100  # records of each partition between two faults
_STALLED_S = 3.0
_WITHIN_S = 120.0
_OPTIONS = (
    # tasks that are killed come back at once, and their numbers are new
    *("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0", "--set", "heron.metrics.export.s=0.25"),
)
_CHECKPOINTS = ("--interval", "0.5")


@dataclass
class Flow:
    """A run.

    Attributes:
        topology: the name that the program gives to the topology.
        run: the command.
    """

    sandbox: Sandbox
    topology: str
    run: HeronRun
    gate: int = 0

    @classmethod
    def start(
        cls,
        sandbox: Sandbox,
        program: Path,
        topology: str,
        mode: str,
        given: Mapping[str, object],
        *words: str,
        checkpoints: bool,
        continues: bool = False,
    ) -> Flow:
        """Start a program behind a closed gate; it may go on from the last checkpoint of the topology."""
        args = ("--mode", mode, "--given", json.dumps(given), *(_CHECKPOINTS if checkpoints else ()), *words)
        options = ("--from-checkpoint", "latest") if continues else ()
        run = sandbox.start(program.name, *_OPTIONS, *options, args=args)
        flow = cls(sandbox, topology, run)
        flow._set_gate(_STEP)
        return flow

    def _set_gate(self, number: int) -> None:
        self.gate = number
        part = self.run.out / f".{GATE}"
        part.write_text(str(number), encoding="ascii")
        part.replace(self.run.out / GATE)

    def advance(self) -> int:
        """Let the next records through; returns the number behind them."""
        self._set_gate(self.gate + _STEP)
        return self.gate

    def open_gate(self) -> None:
        """Let everything through."""
        (self.run.out / GATE).unlink(missing_ok=True)

    def kill(self, role: str, name: str = "") -> None:
        """Kill a process of a role, and wait for the one that replaces it."""
        before = {process.pid for process in self.run.processes(role, name)}
        self.run.processes(role, name)[0].kill()
        self.run.until(lambda: {each.pid for each in self.run.processes(role, name)} - before, f"another {role}{name}")

    def component(self, stage: str) -> str:
        """The component of a stage."""
        (found,) = [each["name"] for each in self._components() if each["name"].startswith(stage)]
        return str(found)

    def update(self, stage: str, tasks: int) -> None:
        """Change the number of tasks of a stage."""
        self.sandbox.update(self.topology, f"{self.component(stage)}:{tasks}")

    def rss_bytes(self, stage: str) -> int:
        """The memory of the largest task of a stage."""
        return max(process.memory_info().rss for process in self.run.processes("instance", f"/{stage}"))

    def stalled_rss_bytes(self, stage: str) -> int:
        """Wait until a stage has emitted nothing for 3 s; return the most memory of its largest task meanwhile."""
        name, seen, since_s, most = self.component(stage), -1, monotonic_s(), 0

        def is_stalled() -> bool:
            nonlocal seen, since_s, most
            most = max(most, self.rss_bytes(stage))
            (emitted,) = [each["emitted"] for each in self._components() if each["name"] == name]
            if emitted != seen:
                seen, since_s = emitted, monotonic_s()
            return bool(seen) and monotonic_s() - since_s > _STALLED_S

        self.run.until(is_stalled, f"{name} emits nothing", _WITHIN_S)
        return most

    def backlog(self, stage: str) -> float | None:
        """Wait for metrics of a stage, and return the backlog that they show, of all its tasks; None if they do not."""
        rows: list[dict[str, Any]] = []

        def measured() -> bool:
            rows[:] = self.sandbox.metrics(self.topology, self.component(stage))
            return any(each["name"] == "emit-count" and each["value"] for each in rows)

        self.run.until(measured, f"metrics of {stage}", _WITHIN_S)
        found = [float(each["value"]) for each in rows if each["name"] == "backlog"]
        return sum(found) if found else None

    def checkpoint(self) -> None:
        """Wait for two more complete checkpoints: what the second one contains was begun after this call."""
        self.run.grows(lambda: self.sandbox.checkpoints(self.topology)["complete"], "checkpoints", 1, _WITHIN_S)

    def dead_letters(self) -> list[str]:
        """The dead letters so far, as text."""
        text = self.sandbox.output_of("dead-letters", self.topology, "list", "--json")
        return [json.dumps(each) for each in json.loads(text)]

    def _components(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sandbox.status(self.topology)["components"]
        return found


FAULTS = (("instance", f"/{READ}"), ("instance", f"/{WRITE}"), ("stmgr", ""), ("instance", f"/{READ}"))
"""Roles and names of what the suites kill, one after the other."""


class Feeding:
    """Puts records into a feed: those of a partition in their order, and partitions side by side."""

    def __init__(self, feed: SourceFeed, partitions: int, poison: int) -> None:
        self._feed, self._poison = feed, poison
        self._threads = [ThreadPoolExecutor(1) for _ in range(partitions)]
        self._calls: list[Future[None]] = []
        self._counts = [0] * partitions
        self.wanted: set[Record] = set()
        """The records that must arrive."""

    def put(self, *parts: tuple[int, int]) -> None:
        """Begin to put more records into each partition: so many, each with so many bytes behind it, in one call."""
        for partition, thread in enumerate(self._threads):
            texts: list[str] = []
            for count, padding in parts:
                begin = self._counts[partition]
                self._counts[partition] += count
                behind = f" {'x' * padding}" if padding else ""
                texts += [self._text(partition, each, behind) for each in range(begin, begin + count)]
            self._calls.append(thread.submit(self._feed.put, partition, texts))

    def _text(self, partition: int, number: int, behind: str) -> str:
        if number == self._poison:
            return f"{partition} {number} {POISON}"
        self.wanted.add((partition, number))
        return f"{partition} {number}{behind}"

    def wait(self) -> None:
        """Wait until the server has everything."""
        for each in self._calls:
            each.result(_WITHIN_S)
        self._calls.clear()

    def numbers(self) -> Iterable[tuple[int, list[int]]]:
        """The numbers of each partition that must arrive."""
        for partition in range(len(self._counts)):
            yield partition, sorted(number for place, number in self.wanted if place == partition)
