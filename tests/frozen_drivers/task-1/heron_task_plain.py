"""The inspector ``plain``: shows less of a task than the inspector of the project, with the standard library alone."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import ClassVar, Self

from heron.clock import monotonic_s, thread_cpu_clock, wall_s
from heron.driver_kit.code_origin import code_origin, module_of
from heron.driver_kit.redaction import redact
from heron.spi.driver import NoOptions
from heron.spi.inspected_task import FirstRows, InspectedTask
from heron.spi.inspector import TaskInspector
from heron.spi.options import decode_options
from heron.spi.task_memory import HeldMemory, MemoryLook, TaskMemory
from heron.spi.task_profile import ProfiledStack, TaskProfile
from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack
from heron.spi.task_tuples import SampledTuple, TaskTuples

_SHOWN = (str, int, float, bool, type(None))
_CHARACTERS = 120
_LOOK_S = 0.02


class PlainInspector(TaskInspector):
    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decode_options(options, NoOptions, "task")
        return cls()

    def stacks(self, task: InspectedTask, stop: threading.Event) -> TaskStacks:
        threads = {each.ident: each for each in threading.enumerate()}
        found = []
        for ident, frame in sys._current_frames().items():
            if ident == threading.get_ident():
                continue
            thread = threads.get(ident)
            role = "task" if ident == threading.main_thread().ident else "other"
            role = "gateway" if ident == task.gateway_thread else role
            codes = [each.f_code for each in _calls(frame)]
            frames = tuple(_described(each) for each in reversed([*_calls(frame)]))
            name, native_id = (thread.name, thread.native_id or 0) if thread else ("unknown", 0)
            found.append(ThreadStack(name, native_id, role, "waits", 0.0, 0.0, task.engine_wait(codes), frames))
        found.sort(key=lambda each: ("task", "gateway", "other").index(each.role))
        return TaskStacks(*_place(task), wall_s(), tuple(found))

    def profile(self, task: InspectedTask, seconds: float, stop: threading.Event) -> TaskProfile:
        main = threading.main_thread().ident or 0
        began_at_s, began_s, cpu_s = wall_s(), monotonic_s(), thread_cpu_clock(main)
        before_s, before_cpu_s, samples = began_s, cpu_s(), 0
        frames: dict[StackFrame, int] = {}
        on_s, off_s = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
        while monotonic_s() - began_s < seconds and not stop.wait(_LOOK_S):
            calls = [_described(each) for each in _calls(sys._current_frames().get(main))]
            stack = tuple(frames.setdefault(each, len(frames)) for each in reversed(calls))
            now_s, now_cpu_s = monotonic_s(), cpu_s()
            on_s[stack] += min(now_s - before_s, now_cpu_s - before_cpu_s)
            off_s[stack] += max(0.0, now_s - before_s - now_cpu_s + before_cpu_s)
            before_s, before_cpu_s, samples = now_s, now_cpu_s, samples + 1
        stacks = tuple(ProfiledStack(each, on_s[each], off_s[each]) for each in on_s)
        return TaskProfile(*_place(task), began_at_s, before_s - began_s, samples, tuple(frames), stacks)

    def memory(self, task: InspectedTask, seconds: float, stop: threading.Event) -> TaskMemory:
        first, held = _look(), _held(task)
        second = first
        if seconds:
            stop.wait(seconds)
            second = _look()
        grown = []
        for name, (kind, entries, held_bytes) in _held(task).items():
            _, former, former_bytes = held.get(name, (kind, 0, 0))
            grown.append(HeldMemory(name, kind, entries, held_bytes, entries - former, held_bytes - former_bytes))
        return TaskMemory(*_place(task), first, second, 0.0, 0, (), (), tuple(grown), ())

    def tuples(self, task: InspectedTask, wanted: int, seconds: float, stop: threading.Event) -> TaskTuples:
        began_at_s, began_s = wall_s(), monotonic_s()
        sample = task.sample = PlainSample(task, wanted)
        try:
            while monotonic_s() - began_s < seconds and not sample.is_full() and not stop.wait(_LOOK_S):
                pass
        finally:
            task.sample = None
        lasted_s = monotonic_s() - began_s
        received, emitted = tuple(sample.received[:wanted]), tuple(sample.emitted[:wanted])
        return TaskTuples(*_place(task), began_at_s, lasted_s, wanted, received, emitted)


class PlainSample:
    def __init__(self, task: InspectedTask, wanted: int) -> None:
        self.received: list[SampledTuple] = []
        self.emitted: list[SampledTuple] = []
        self._task, self._wanted = task, wanted

    def is_full(self) -> bool:
        received = not self._task.inputs or len(self.received) >= self._wanted
        return received and (not self._task.outputs or len(self.emitted) >= self._wanted)

    def receive(self, key: tuple[str, str], task_id: int, fields: Sequence[str], first_rows: FirstRows) -> None:
        for row in first_rows(self._wanted):
            self.received.append(SampledTuple(key[0], task_id, key[1], tuple(fields), self._texts(row)))

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        identity = self._task.identity
        for each in rows[: self._wanted]:
            row = each if len(fields) > 1 and isinstance(each, list | tuple) else (each,)
            texts = self._texts(row)
            self.emitted.append(SampledTuple(identity.component, identity.task_id, stream, tuple(fields), texts))

    def emit_columns(self, stream: str, fields: Sequence[str], batch: object) -> None:
        rows = [(f"a batch of {type(batch).__name__}",) * len(fields)]
        self.emit(stream, fields, rows)

    def _texts(self, row: Sequence[object]) -> tuple[str, ...]:
        return tuple(self._text(each) for each in row)

    def _text(self, value: object) -> str:
        if type(value) not in _SHOWN:
            return f"a {type(value).__name__}"
        return redact(repr(value), self._task.secrets, "(hidden)")[:_CHARACTERS]


def _place(task: InspectedTask) -> tuple[str, str, int, int, int, int, str]:
    it = task.identity
    return it.topology, it.component, it.task_id, it.container_id, it.incarnation, os.getpid(), os.uname().nodename


def _calls(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _described(frame: FrameType) -> StackFrame:
    code = frame.f_code
    origin = code_origin(code.co_filename, module_of(frame.f_globals))
    return StackFrame(code.co_filename, frame.f_lineno or 0, code.co_qualname, origin.value)


def _look() -> MemoryLook:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return MemoryLook(wall_s(), 0.0, pages * os.sysconf("SC_PAGE_SIZE"), 0, None, 0, 0, 0.0)


def _held(task: InspectedTask) -> dict[str, tuple[str, int, int]]:
    found = {}
    for name, parts in task.states().items():
        tables = [each for each in parts if type(each) is dict]
        found[f"state {name!r}"] = ("keyed state", sum(map(len, tables)), sum(map(sys.getsizeof, tables)))
    names = getattr(type(task.component), "__dict__", {})
    attributes = names["__dict__"].__get__(task.component) if "__dict__" in names else {}
    for name, value in list(attributes.items()):
        if type(value) in (dict, list, set):
            found[f"self.{name}"] = (type(value).__name__, len(value), sys.getsizeof(value))
    return found
