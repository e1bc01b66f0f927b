"""Samples the calls of the task thread.

Each sample stands for the time since the last one. The part of it that the task thread was on a processor, by the clock
of that thread, counts as on, the rest as off. So a sample that comes late, on a busy machine, counts as it should.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from types import CodeType, FrameType

from heron.clock import monotonic_s, thread_cpu_clock, wall_s
from heron.driver_kit.code_origin import CodeOrigin, code_origin, module_of
from heron.spi.inspected_task import InspectedTask
from heron.spi.task_profile import ProfiledStack, TaskProfile
from heron.spi.task_stacks import StackFrame
from heron_task_inspector.source_line import source_line

__all__ = ["PERIOD_S", "StackTimes", "profile_of"]

PERIOD_S = 0.0125  # 80 samples a second: a call of 1 % of the time has 8 samples in 10 s
_DEEPEST = 120
_MOST_STACKS = 20_000  # what a profile may need of memory
_MOST_CALLS = 50_000  # in all stacks of the answer, which then has about 300 KiB

_Call = tuple[CodeType, int, str]  # with the line, and the name of the module
_Stack = tuple[_Call, ...]


class StackTimes:
    """The time on and off a processor of each stack."""

    def __init__(self) -> None:
        self._times: dict[_Stack, list[float]] = {}
        self._other = [0.0, 0.0]
        self.samples = 0
        self.lasted_s = 0.0

    def add(self, stack: _Stack, elapsed_s: float, cpu_s: float) -> None:
        """Adds a sample that stands for `elapsed_s` seconds, of which the thread was on a processor for `cpu_s`."""
        on_s = min(elapsed_s, max(0.0, cpu_s))
        times = self._times.get(stack)
        if times is None:
            times = self._other if len(self._times) >= _MOST_STACKS else self._times.setdefault(stack, [0.0, 0.0])
        times[0] += on_s
        times[1] += elapsed_s - on_s
        self.samples += 1
        self.lasted_s += elapsed_s

    def most(
        self, calls: int = _MOST_CALLS
    ) -> tuple[tuple[StackFrame, ...], tuple[ProfiledStack, ...], tuple[float, float]]:
        """The frames and the stacks with the most time, up to that many calls; and the rest, on and off.

        Frames of user code have their `source`.
        """
        numbers: dict[StackFrame, int] = {}
        stacks, other = [], list(self._other)
        for stack, (on_s, off_s) in sorted(self._times.items(), key=lambda item: -sum(item[1])):
            calls -= len(stack)
            if calls < 0:
                other[0] += on_s
                other[1] += off_s
                continue
            indices = [numbers.setdefault(_described(each), len(numbers)) for each in stack]
            stacks.append(ProfiledStack(tuple(indices), round(on_s, 6), round(off_s, 6)))
        return tuple(numbers), tuple(stacks), (round(other[0], 6), round(other[1], 6))


def profile_of(task: InspectedTask, seconds: float, stop: threading.Event) -> TaskProfile:
    """A profile of the main thread of this process over some seconds; `stop` ends it early."""
    ident = threading.main_thread().ident or 0
    times, cpu_s, began_at_s = StackTimes(), thread_cpu_clock(ident), wall_s()
    before_s, before_cpu_s = monotonic_s(), cpu_s()
    ends_s = before_s + seconds
    while before_s < ends_s and not stop.wait(PERIOD_S):
        stack = _stack_of(sys._current_frames().get(ident))
        now_s, now_cpu_s = monotonic_s(), cpu_s()
        times.add(stack, now_s - before_s, now_cpu_s - before_cpu_s)
        before_s, before_cpu_s = now_s, now_cpu_s
    frames, stacks, (other_on_s, other_off_s) = times.most()
    identity = task.identity
    return TaskProfile(
        topology=identity.topology,
        component=identity.component,
        task_id=identity.task_id,
        container_id=identity.container_id,
        incarnation=identity.incarnation,
        pid=os.getpid(),
        host=socket.gethostname(),
        began_at_s=began_at_s,
        lasted_s=round(times.lasted_s, 6),
        samples=times.samples,
        frames=frames,
        stacks=stacks,
        other_on_s=other_on_s,
        other_off_s=other_off_s,
    )


def _stack_of(frame: FrameType | None) -> _Stack:
    calls: list[_Call] = []
    while frame is not None and len(calls) < _DEEPEST:
        calls.append((frame.f_code, frame.f_lineno or 0, module_of(frame.f_globals)))
        frame = frame.f_back
    calls.reverse()
    return tuple(calls)


def _described(call: _Call) -> StackFrame:
    code, line, module = call
    origin, source = code_origin(code.co_filename, module), ""
    if origin is CodeOrigin.USER:
        names = vars(sys.modules[module]) if module in sys.modules else None
        source = source_line(code.co_filename, line, names)
    return StackFrame(code.co_filename, line, code.co_qualname, origin.value, source)
