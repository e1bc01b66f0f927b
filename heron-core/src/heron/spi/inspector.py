"""Contract of the task family: an inspector answers questions about the inside of a running task.

A command asks (``heron stack``, ``heron profile``, ``heron memory``, ``heron inspect``, ``heron capture``), the
topology manager checks the question, and the process of the task answers. It looks for the installed inspector at the
first question and imports it then, so an inspector costs a task nothing before. An installation has one inspector.

`heron.spi.inspected_task` has what an inspector is given; `heron.spi.task_stacks`, `heron.spi.task_profile`,
`heron.spi.task_memory`, `heron.spi.task_tuples` and `heron.spi.task_capture` have what it returns.
"""

from __future__ import annotations

from abc import abstractmethod
from threading import Event
from typing import TYPE_CHECKING

from heron.errors import PluginError
from heron.spi.driver import Driver

if TYPE_CHECKING:  # a task needs them only for its answer
    from heron.spi.inspected_task import InspectedTask
    from heron.spi.task_capture import CaptureShape, TaskCapture
    from heron.spi.task_memory import TaskMemory
    from heron.spi.task_profile import TaskProfile
    from heron.spi.task_stacks import TaskStacks
    from heron.spi.task_tuples import TaskTuples

__all__ = ["OLDEST_SPI_VERSION", "SPI_VERSION", "TaskInspector"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1


class TaskInspector(Driver):
    """Looks into the task of its own process. A driver of the family `task`.

    The process opens it once, without options. Each question is a call on a thread of its own, which is a daemon and
    ends with the call. `stacks` may be called while another call is under way. Of the others, at most one is under way
    at a time.

    These rules hold for each question:

    - The call ends at most 1 s after `stop` is set, and then returns what it has so far.
    - It calls no code of the author's classes (no ``__repr__``, ``__eq__``, ``__len__``, no property): that code may
      raise, block, or change the task.
    - The task continues. The call must not hold the interpreter lock for more than 0.1 s at a time.
    - It leaves the process as it was: no thread, no tracer, no `InspectedTask.sample`.
    - An exception is a failure of this question alone. The log of the task has it, and the command gets its text.
    """

    @abstractmethod
    def stacks(self, task: InspectedTask, stop: Event) -> TaskStacks:
        """Return all threads of the process with their calls, except the thread of this call.

        The thread of the component is the first one, then that of the gateway. It may take 0.5 s.
        """

    @abstractmethod
    def profile(self, task: InspectedTask, seconds: float, stop: Event) -> TaskProfile:
        """Return where the thread of the component spends its time, by samples.

        They are taken over `seconds` (above 0, at most 300).
        """

    @abstractmethod
    def memory(self, task: InspectedTask, seconds: float, stop: Event) -> TaskMemory:
        """Return what the memory of the process holds, from two looks with `seconds` (0 to 300) in between.

        0 means a single look, which traces nothing. The call may take 5 s longer than `seconds`.
        """

    @abstractmethod
    def tuples(self, task: InspectedTask, wanted: int, seconds: float, stop: Event) -> TaskTuples:
        """Return the next tuples: `wanted` (1 to 100) of each direction, or those of `seconds` (above 0, at most 300).

        The values are text of at most 120 characters, without the `secrets` of the task. The topology manager has
        checked that the configuration of the component allows it. A component without inputs receives none, and a
        component without outputs emits none; the call does not wait for these.
        """

    def capture(
        self, task: InspectedTask, seconds: float, most_bytes: int, shape: CaptureShape | None, stop: Event
    ) -> TaskCapture:
        """Return what the task emits in `seconds` (above 0, at most 300); with `shape`, no value leaves the task.

        The call records at most `most_bytes` (1 KiB to 32 MiB). The task must not spend more than a hundredth of its
        time on it: beyond that, flushes keep fewer rows. An inspector of before this method declines.

        Raises:
            PluginError: when this inspector takes no captures.
        """
        msg = f"the task inspector {type(self).__qualname__} takes no captures; install a newer one"
        raise PluginError(msg)
