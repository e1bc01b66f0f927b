"""The stacks of all threads of this process but the one that looks, as values.

The thread that looks holds the interpreter lock, so a thread that computes waits for that lock at this moment. Only its
processor time between two looks tells it from a thread that waits for something else.

Frames live on: a thread that gets the lock moves to other lines, and a generator that yields loses its callers. So the
calls of all threads are copied first. Reading the source of a line takes its time, and gives the lock away.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType

from heron.clock import wall_s
from heron.driver_kit.code_origin import code_origin, module_of
from heron.spi.inspected_task import InspectedTask
from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack
from heron_task_inspector.source_line import source_line
from heron_task_inspector.thread_usage import ThreadUsage, thread_usage, wait_of

__all__ = ["stack_frames", "stacks_now", "state_of", "thread_usages"]

_BUSY = 0.05  # a thread that waits uses less of a processor, even when it wakes often
_FRAMES_EACH_END = 60  # of a deep recursion
_THREADS = 200

_Call = tuple[CodeType, int, dict[str, object]]  # with the line, and the names of the module


def thread_usages() -> dict[int, ThreadUsage]:
    """The usage of every Python thread, by its native id: the first of two looks."""
    found = {each.native_id: thread_usage(each.native_id) for each in threading.enumerate() if each.native_id}
    return {native_id: usage for native_id, usage in found.items() if usage is not None}


def stacks_now(task: InspectedTask, before: Mapping[int, ThreadUsage], elapsed_s: float) -> TaskStacks:
    """All other threads now; `before` is their usage `elapsed_s` seconds ago."""
    calls = {ident: [*_walk(frame)] for ident, frame in tuple(sys._current_frames().items())[:_THREADS]}
    calls.pop(threading.get_ident(), None)
    look = _Look(task, before, thread_usages(), elapsed_s)
    threads = {each.ident: each for each in threading.enumerate()}
    stacks = [look.stack(ident, threads.get(ident), of_thread) for ident, of_thread in calls.items()]
    order = ("task", "gateway", "other")
    stacks.sort(key=lambda each: (order.index(each.role), each.native_id))
    identity = task.identity
    return TaskStacks(
        topology=identity.topology,
        component=identity.component,
        task_id=identity.task_id,
        container_id=identity.container_id,
        incarnation=identity.incarnation,
        pid=os.getpid(),
        host=socket.gethostname(),
        at_s=wall_s(),
        threads=tuple(stacks),
    )


def state_of(before: ThreadUsage | None, now: ThreadUsage, elapsed_s: float) -> tuple[str, float]:
    """Whether a thread runs, is ready or waits, and its share of a processor since `before`."""
    share = max(0.0, now.cpu_s - before.cpu_s) / elapsed_s if before is not None and elapsed_s > 0 else 0.0
    if share >= _BUSY:
        return "running", min(1.0, share)
    return ("ready" if now.state == "R" else "waits"), share


def stack_frames(frame: FrameType | None) -> tuple[tuple[StackFrame, ...], int]:
    """The calls of a thread, the outermost first, and how many in the middle are left out."""
    return _shown_frames([*_walk(frame)])


@dataclass(frozen=True, slots=True)
class _Look:
    """The usage of the threads `elapsed_s` seconds ago and now."""

    task: InspectedTask
    before: Mapping[int, ThreadUsage]
    now: Mapping[int, ThreadUsage]
    elapsed_s: float

    def stack(self, ident: int, thread: threading.Thread | None, calls: Sequence[_Call]) -> ThreadStack:
        native_id = (thread.native_id if thread is not None else None) or 0
        name = thread.name if thread is not None else "a thread of a library"
        frames, omitted = _shown_frames(calls)
        usage = self.now.get(native_id)
        state, share, cpu_s, waits_for = "unknown", 0.0, 0.0, ""
        if usage is not None:
            state, share = state_of(self.before.get(native_id), usage, self.elapsed_s)
            cpu_s = usage.cpu_s
            if state == "waits":
                waits_for = self.task.engine_wait(code for code, _, _ in calls) or wait_of(usage.syscall)
        role = self._role(ident)
        return ThreadStack(name, native_id, role, state, round(share, 3), round(cpu_s, 6), waits_for, frames, omitted)

    def _role(self, ident: int) -> str:
        if ident == threading.main_thread().ident:
            return "task"
        return "gateway" if ident == self.task.gateway_thread else "other"


def _walk(frame: FrameType | None) -> Iterator[_Call]:
    """The calls of a thread, the innermost first."""
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0, frame.f_globals
        frame = frame.f_back


def _shown_frames(calls: Sequence[_Call]) -> tuple[tuple[StackFrame, ...], int]:
    omitted = max(0, len(calls) - 2 * _FRAMES_EACH_END)
    kept = calls if not omitted else [*calls[:_FRAMES_EACH_END], *calls[-_FRAMES_EACH_END:]]
    return tuple(_described(each) for each in reversed(kept)), omitted


def _described(call: _Call) -> StackFrame:
    code, line, names = call
    source = source_line(code.co_filename, line, names)
    origin = code_origin(code.co_filename, module_of(names))
    return StackFrame(code.co_filename, line, code.co_qualname, origin.value, source)
