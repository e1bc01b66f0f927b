"""Answers questions about the inside of this task. Runs on the gateway thread, so it answers while user code blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from heron.clock import monotonic_s
from heron.instance.profiler import Profiler
from heron.instance.thread_stacks import stacks_now, thread_usages
from heron.instance.thread_usage import ThreadUsage
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.ipc.task_stacks import encode_stacks
from heron.kernel.role_spec import InstanceSpec

__all__ = ["Inspection"]

_BETWEEN_LOOKS_S = 0.1  # long enough to tell a thread that computes from one that waits, even on a busy machine

_POLL_S = 0.05  # a profile ends with its last sample, and is then encoded

_log = logging.getLogger(__name__)


class Inspection:
    """The questions of one task; `send` sends an answer to the stream manager."""

    def __init__(self, spec: InstanceSpec, reactor: Reactor, send: Callable[[Envelope], None]) -> None:
        self._spec = spec
        self._reactor = reactor
        self._send = send
        self._profiler: Profiler | None = None

    def stack_asked(self, envelope: Envelope) -> None:
        """Looks at the threads now, and again a moment later; then answers."""
        number, before = envelope.stack_request.request_id, thread_usages()
        self._reactor.after(_BETWEEN_LOOKS_S, partial(self._answer_stacks, number, before, monotonic_s()))

    def profile_asked(self, envelope: Envelope) -> None:
        """Samples the task thread for some seconds; then answers. Declines while it samples for another command."""
        request = envelope.profile_request
        if self._profiler is not None:
            left_s = self._profiler.left_s()
            refusal = f"task {request.task_id} is being profiled already, for another {left_s:.1f} s; ask again then"
            self._send(Envelope(task_answer=pb.TaskAnswer(request_id=request.request_id, refusal=refusal)))
            return
        self._profiler = Profiler(self._spec, request.seconds)
        self._reactor.after(request.seconds, partial(self._answer_profile, request.request_id, self._profiler))

    def close(self) -> None:
        """Ends a profile that is being taken."""
        if self._profiler is not None:
            self._profiler.stop()

    def _answer_profile(self, number: int, profiler: Profiler) -> None:
        if profiler.is_alive():
            self._reactor.after(_POLL_S, partial(self._answer_profile, number, profiler))
        else:
            self._profiler = None
            self._answer(number, profiler.document)

    def _answer_stacks(self, number: int, before: dict[int, ThreadUsage], before_s: float) -> None:
        self._answer(number, lambda: encode_stacks(stacks_now(self._spec, before, monotonic_s() - before_s)))

    def _answer(self, number: int, make: Callable[[], bytes]) -> None:
        try:
            answer = pb.TaskAnswer(request_id=number, document=make())
        except Exception as error:  # a question must not end the process of the task
            _log.exception("a question about this task cannot be answered")
            answer = pb.TaskAnswer(request_id=number, failure=f"looking into the task raised {error!r}; see its log")
        self._send(Envelope(task_answer=answer))
