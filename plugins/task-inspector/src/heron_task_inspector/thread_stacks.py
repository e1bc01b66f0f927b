"""The stacks of all threads of this process, as values. Runs on the gateway thread.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType

from heron.clock import wall_s
from heron.driver_kit.code_origin import CodeOrigin, code_origin, module_of
from heron.kernel.role_spec import InstanceSpec
from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack
from heron_task_inspector.source_line import source_line
from heron_task_inspector.thread_usage import ThreadUsage, thread_usage, wait_of

__all__ = ["engine_wait", "main_thread_frame", "stack_frames", "stacks_now", "state_of", "thread_usages"]

_BUSY = 0.05  # a thread that waits uses less of a processor, even when it wakes often
_FRAMES_EACH_END = 60  # of a deep recursion
_THREADS = 200
_ENGINE_WAITS = {"DataIn.wait": "input", "DataOut.wait_for_room": "room for its output"}

_Call = tuple[CodeType, int, dict[str, object]]  # with the line, and the names of the module


def main_thread_frame() -> FrameType | None:
    """The innermost frame of the thread that runs the component."""
    return sys._current_frames().get(threading.main_thread().ident or 0)


def thread_usages() -> dict[int, ThreadUsage]:
    """The usage of every Python thread, by its native id: the first of two looks."""
    found = {each.native_id: thread_usage(each.native_id) for each in threading.enumerate() if each.native_id}
    return {native_id: usage for native_id, usage in found.items() if usage is not None}


def stacks_now(spec: InstanceSpec, before: Mapping[int, ThreadUsage], elapsed_s: float) -> TaskStacks:
    """All threads now; `before` is their usage `elapsed_s` seconds ago."""
    calls = {ident: [*_walk(frame)] for ident, frame in tuple(sys._current_frames().items())[:_THREADS]}
    now = thread_usages()
    names = {each.ident: each for each in threading.enumerate()}
    stacks = []
    for ident, of_thread in calls.items():
        thread = names.get(ident)
        native_id = (thread.native_id if thread is not None else None) or 0
        name = thread.name if thread is not None else "a thread of a library"
        stacks.append(_stack(name, native_id, ident, of_thread, before, now, elapsed_s))
    order = ("task", "gateway", "other")
    stacks.sort(key=lambda each: (order.index(each.role), each.native_id))
    return TaskStacks(
        topology=spec.topology,
        component=spec.component,
        task_id=spec.task_id,
        container_id=spec.container_id,
        incarnation=spec.incarnation,
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


def engine_wait(frame: FrameType) -> str:
    """What the engine's innermost frames wait for, unless they wait on behalf of other code."""
    return _engine_wait(_walk(frame))


def _stack(  # the values of one thread
    name: str,
    native_id: int,
    ident: int,
    calls: Sequence[_Call],
    before: Mapping[int, ThreadUsage],
    now: Mapping[int, ThreadUsage],
    elapsed_s: float,
) -> ThreadStack:
    role = _role(ident)
    frames, omitted = _shown_frames(calls)
    usage = now.get(native_id)
    state, share = ("unknown", 0.0) if usage is None else state_of(before.get(native_id), usage, elapsed_s)
    if role == "gateway":
        state = "running"  # it answers
    waits_for = ""
    if state == "waits" and usage is not None:
        waits_for = _engine_wait(calls) or wait_of(usage.syscall)
    cpu_s = round(usage.cpu_s, 6) if usage is not None else 0.0
    return ThreadStack(name, native_id, role, state, round(share, 3), cpu_s, waits_for, frames, omitted)


def _role(ident: int) -> str:
    if ident == threading.main_thread().ident:
        return "task"
    return "gateway" if ident == threading.get_ident() else "other"


def _walk(frame: FrameType | None) -> Iterator[_Call]:
    """The calls of a thread, the innermost first."""
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0, frame.f_globals
        frame = frame.f_back


def _shown_frames(calls: Sequence[_Call]) -> tuple[tuple[StackFrame, ...], int]:
    omitted = max(0, len(calls) - 2 * _FRAMES_EACH_END)
    kept = calls if not omitted else [*calls[:_FRAMES_EACH_END], *calls[-_FRAMES_EACH_END:]]
    return tuple(_described(each) for each in reversed(kept)), omitted


def _engine_wait(calls: Iterable[_Call]) -> str:
    for code, _, _ in calls:
        origin = code_origin(code.co_filename)
        if origin is CodeOrigin.USER:
            return ""
        if origin is CodeOrigin.ENGINE and code.co_qualname in _ENGINE_WAITS:
            return _ENGINE_WAITS[code.co_qualname]
    return ""


def _described(call: _Call) -> StackFrame:
    code, line, names = call
    source = source_line(code.co_filename, line, names)
    origin = code_origin(code.co_filename, module_of(names))
    return StackFrame(code.co_filename, line, code.co_qualname, origin.value, source)
