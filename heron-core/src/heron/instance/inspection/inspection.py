"""Answers questions about the inside of this task. Runs on the gateway thread, so it answers while user code blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.instance.inspection.observation import TaskObserver
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.ipc.task_question import TaskRequest
from heron.kernel.role_spec import InstanceSpec
from heron.spi.inspected_task import InspectedTask
from heron.spi.task_stacks import encode_stacks
from heron_task_inspector.profiler import Profiler
from heron_task_inspector.thread_stacks import stacks_now, thread_usages
from heron_task_inspector.thread_usage import ThreadUsage

if TYPE_CHECKING:  # see below
    from heron_task_inspector.memory_observer import MemoryObserver
    from heron_task_inspector.tuple_sample import TupleObserver

__all__ = ["Inspection"]

_BETWEEN_LOOKS_S = 0.1  # long enough to tell a thread that computes from one that waits, even on a busy machine

_POLL_S = 0.05  # how late an answer is sent

_MEMORY_OBSERVER = "heron_task_inspector.memory_observer:MemoryObserver"
_TUPLE_OBSERVER = "heron_task_inspector.tuple_sample:TupleObserver"
"""Loaded by name, because a task needs them and what they import only when it is asked."""

_log = logging.getLogger(__name__)


class Inspection:
    """The questions of one task; `send` sends an answer to the stream manager."""

    def __init__(
        self, spec: InstanceSpec, reactor: Reactor, task: InspectedTask, send: Callable[[Envelope], None]
    ) -> None:
        self._spec = spec
        self._reactor = reactor
        self._task = task
        self._send = send
        self._observer: TaskObserver | None = None

    def stack_asked(self, envelope: Envelope) -> None:
        """Looks at the threads now, and again a moment later; then answers."""
        number, before = envelope.stack_request.request_id, thread_usages()
        self._reactor.after(_BETWEEN_LOOKS_S, partial(self._answer_stacks, number, before, monotonic_s()))

    def profile_asked(self, envelope: Envelope) -> None:
        """Samples the task thread for some seconds; then answers."""
        request = envelope.profile_request
        self._observe(request, lambda: Profiler(self._spec, request.seconds))

    def memory_asked(self, envelope: Envelope) -> None:
        """Observes the memory for some seconds; then answers."""
        request = envelope.memory_request

        def observer() -> TaskObserver:
            made = cast("type[MemoryObserver]", load_object(_MEMORY_OBSERVER, "the observer of memory"))
            return made(self._spec, request.seconds, self._task)

        self._observe(request, observer)

    def tuples_asked(self, envelope: Envelope) -> None:
        """Shows the next tuples. The topology manager has checked that the topology allows it."""
        request = envelope.tuples_request

        def observer() -> TaskObserver:
            made = cast("type[TupleObserver]", load_object(_TUPLE_OBSERVER, "the observer of tuples"))
            return made(self._spec, request.seconds, request.tuples, self._task)

        self._observe(request, observer)

    def close(self) -> None:
        """Ends an observation."""
        if self._observer is not None:
            self._observer.stop()

    def _observe(self, request: TaskRequest, begin: Callable[[], TaskObserver]) -> None:
        """Begins an observation, which a thread makes. Declines while another one is under way: it would disturb it."""
        if self._observer is not None:
            what, left_s = self._observer.what, self._observer.left_s()
            refusal = f"task {request.task_id} is being {what} already, for another {left_s:.1f} s; ask again then"
            self._send(Envelope(task_answer=pb.TaskAnswer(request_id=request.request_id, refusal=refusal)))
            return
        try:
            self._observer = begin()
        except Exception as error:
            self._fail(request.request_id, error)
        else:
            self._await(request.request_id, self._observer)

    def _await(self, number: int, observer: TaskObserver) -> None:
        if observer.is_alive():
            self._reactor.after(_POLL_S, partial(self._await, number, observer))
        else:
            self._observer = None
            self._answer(number, observer.document)

    def _answer_stacks(self, number: int, before: dict[int, ThreadUsage], before_s: float) -> None:
        self._answer(number, lambda: encode_stacks(stacks_now(self._spec, before, monotonic_s() - before_s)))

    def _answer(self, number: int, make: Callable[[], bytes]) -> None:
        try:
            document = make()
        except Exception as error:
            self._fail(number, error)
        else:
            self._send(Envelope(task_answer=pb.TaskAnswer(request_id=number, document=document)))

    def _fail(self, number: int, error: Exception) -> None:
        """A question must not end the process of the task."""
        _log.error("a question about this task cannot be answered", exc_info=error)
        failure = f"looking into the task raised {error!r}; see its log"
        self._send(Envelope(task_answer=pb.TaskAnswer(request_id=number, failure=failure)))
