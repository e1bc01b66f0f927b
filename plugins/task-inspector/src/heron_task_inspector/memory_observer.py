"""Looks at the memory of this process twice, and traces its allocations in between."""

from __future__ import annotations

import os
import socket
import threading

import msgspec

from heron.clock import monotonic_s
from heron.spi.inspected_task import InspectedTask
from heron.spi.task_memory import AllocatingLine, HeldMemory, TaskMemory
from heron_task_inspector.allocations import AllocationTrace, allocating_lines
from heron_task_inspector.memory_holders import lines_with, module_files
from heron_task_inspector.memory_look import MOST_BLOCKS, SeenMemory, held_growth, look_at_memory, type_growth

__all__ = ["MemoryObserver"]

_POLL_S = 0.05  # a component that allocates 3 million blocks a second exceeds the bound by as much again


class MemoryObserver:
    """Observes the memory of this process once, for some seconds; 0 is a single look. `stop` ends it early."""

    def __init__(self, task: InspectedTask, seconds: float, stop: threading.Event) -> None:
        self._task = task
        self._seconds = seconds
        self._stop = stop
        self._notes: list[str] = []
        self._traced_s = 0.0
        self._tracer_bytes = 0

    def observe(self) -> TaskMemory:
        """The two looks, and the allocations in between."""
        first = self._look()
        if not self._seconds:
            return self._answer(first, first, ())
        lines = self._traced_lines()
        return self._answer(first, self._look(), lines)

    def _traced_lines(self) -> tuple[AllocatingLine, ...]:
        modules = module_files()
        trace = AllocationTrace()
        try:
            began_s = monotonic_s()
            ends_s = began_s + self._seconds
            self._wait(trace, began_s + self._seconds / 2, 0.5)
            half = trace.held(modules)
            self._wait(trace, ends_s, 1.0)
            self._traced_s, self._tracer_bytes = monotonic_s() - began_s, trace.used_bytes()
            self._note(trace)
            return allocating_lines(half, trace.held(modules), modules)
        finally:
            trace.end()

    def _wait(self, trace: AllocationTrace, until_s: float, most: float) -> None:
        while monotonic_s() < until_s and trace.filled() < most:
            if self._stop.wait(min(_POLL_S, max(0.0, until_s - monotonic_s()))):
                return

    def _note(self, trace: AllocationTrace) -> None:
        if trace.is_foreign:
            self._notes.append("the component uses tracemalloc itself, so no lines are shown")
        elif trace.filled() >= 1.0:
            bound = f"the tracer needs {self._tracer_bytes >> 20} MiB, its bound"
            self._notes.append(f"tracing ended after {self._traced_s:.1f} s: {bound}")

    def _with_lines(self, held: HeldMemory) -> HeldMemory:
        scope, _, name = held.name.partition(".")
        if scope != "self" or (held.grown_entries <= 0 and held.grown_bytes <= 0):
            return held
        return msgspec.structs.replace(held, used_at=lines_with(self._task.component, name))

    def _look(self) -> SeenMemory:
        return look_at_memory(self._task.component, self._task.states(), self._stop)

    def _answer(self, first: SeenMemory, second: SeenMemory, lines: tuple[AllocatingLine, ...]) -> TaskMemory:
        identity = self._task.identity
        if not second.look.share:
            self._notes.append(f"the task has more than {MOST_BLOCKS:,} blocks of memory, so types are not counted")
        return TaskMemory(
            topology=identity.topology,
            component=identity.component,
            task_id=identity.task_id,
            container_id=identity.container_id,
            incarnation=identity.incarnation,
            pid=os.getpid(),
            host=socket.gethostname(),
            first=first.look,
            second=second.look,
            traced_s=round(self._traced_s, 3),
            tracer_bytes=self._tracer_bytes,
            types=type_growth(first.types, second.types),
            lines=lines,
            held=tuple(self._with_lines(each) for each in held_growth(first.held, second.held)),
            buffers=second.buffers,
            notes=tuple(self._notes),
        )
