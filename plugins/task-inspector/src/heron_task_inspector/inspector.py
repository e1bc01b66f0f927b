"""The driver ``inspector``: looks into the task by what the interpreter and the kernel know of this process."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import ClassVar, Self

from heron.clock import monotonic_s
from heron.spi.driver import NoOptions
from heron.spi.inspected_task import InspectedTask
from heron.spi.inspector import TaskInspector
from heron.spi.options import decode_options
from heron.spi.task_capture import CaptureShape, TaskCapture
from heron.spi.task_memory import TaskMemory
from heron.spi.task_profile import TaskProfile
from heron.spi.task_stacks import TaskStacks
from heron.spi.task_tuples import TaskTuples
from heron_task_inspector.load_capture import capture_of
from heron_task_inspector.memory_observer import MemoryObserver
from heron_task_inspector.profiler import profile_of
from heron_task_inspector.thread_stacks import stacks_now, thread_usages
from heron_task_inspector.tuple_sample import tuples_of

__all__ = ["ProcessInspector"]

_BETWEEN_LOOKS_S = 0.1  # long enough to tell a thread that computes from one that waits, even on a busy machine


class ProcessInspector(TaskInspector):
    """Uses no debugger and no other process: threads of this process look at the others."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """There are no options."""
        decode_options(options, NoOptions, "task")
        return cls()

    def stacks(self, task: InspectedTask, stop: Event) -> TaskStacks:
        """Looks at the threads twice, because their processor time in between tells which of them run."""
        before, before_s = thread_usages(), monotonic_s()
        stop.wait(_BETWEEN_LOOKS_S)
        return stacks_now(task, before, monotonic_s() - before_s)

    def profile(self, task: InspectedTask, seconds: float, stop: Event) -> TaskProfile:
        """Samples the main thread, 80 times a second."""
        return profile_of(task, seconds, stop)

    def memory(self, task: InspectedTask, seconds: float, stop: Event) -> TaskMemory:
        """Counts objects, and traces allocations with tracemalloc."""
        return MemoryObserver(task, seconds, stop).observe()

    def tuples(self, task: InspectedTask, wanted: int, seconds: float, stop: Event) -> TaskTuples:
        """Sets a sample, which the task fills."""
        return tuples_of(task, wanted, seconds, stop)

    def capture(
        self, task: InspectedTask, seconds: float, most_bytes: int, shape: CaptureShape | None, stop: Event
    ) -> TaskCapture:
        """Sets a sample, which records flushes."""
        return capture_of(task, seconds, most_bytes, shape, stop)
