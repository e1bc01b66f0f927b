"""Hands questions about the inside of this task to the installed inspector, and sends the answers.

Runs on the gateway thread, so it answers while user code blocks. The inspector, its import included, runs on a thread
of each question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from heron.driver_kit.loading import load_object
from heron.instance.inspection.observation import Observation
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.spi.inspected_task import InspectedTask
from heron.spi.task_capture import CaptureShape

if TYPE_CHECKING:  # a task imports it at the first question
    from heron.spi.inspector import TaskInspector

    _Ask = Callable[[TaskInspector, threading.Event], object]
    _LongRequest = pb.ProfileRequest | pb.MemoryRequest | pb.TuplesRequest | pb.CaptureRequest

__all__ = ["Inspection", "open_installed"]

_POLL_S = 0.05  # how late the answer of an observation is sent
_LOOK_POLL_S = 0.02  # a look at the threads takes 0.1 s

_OPEN = "heron.kernel.installed_inspector:open_inspector"


def open_installed() -> TaskInspector:
    """The installed inspector; see `heron.kernel.installed_inspector.open_inspector`."""
    return cast("Callable[[], TaskInspector]", load_object(_OPEN, "the search for a task inspector"))()


class Inspection:
    """The questions of one task; `send` sends an answer to the stream manager, `opened` opens the inspector."""

    def __init__(
        self,
        task: InspectedTask,
        reactor: Reactor,
        send: Callable[[Envelope], None],
        opened: Callable[[], TaskInspector] = open_installed,
    ) -> None:
        self._task = task
        self._reactor = reactor
        self._send = send
        self._open = opened
        self._opening = threading.Lock()
        self._inspector: TaskInspector | None = None
        self._observation: Observation | None = None
        self._looks: list[Observation] = []

    def stack_asked(self, envelope: Envelope) -> None:
        """Looks at the threads; then answers. Other questions may be under way."""
        look = self._begin("stacks", "", 0.0, lambda inspector, stop: inspector.stacks(self._task, stop))
        self._looks.append(look)
        self._await(envelope.stack_request.request_id, look, _LOOK_POLL_S)

    def profile_asked(self, envelope: Envelope) -> None:
        """Samples the task thread for some seconds; then answers."""
        request = envelope.profile_request

        def ask(inspector: TaskInspector, stop: threading.Event) -> object:
            return inspector.profile(self._task, request.seconds, stop)

        self._observe(request, "profile", "profiled", ask)

    def memory_asked(self, envelope: Envelope) -> None:
        """Observes the memory for some seconds; then answers."""
        request = envelope.memory_request

        def ask(inspector: TaskInspector, stop: threading.Event) -> object:
            return inspector.memory(self._task, request.seconds, stop)

        self._observe(request, "memory", "observed (its memory)", ask)

    def tuples_asked(self, envelope: Envelope) -> None:
        """Shows the next tuples. The topology manager has checked that the topology allows it."""
        request = envelope.tuples_request

        def ask(inspector: TaskInspector, stop: threading.Event) -> object:
            return inspector.tuples(self._task, request.tuples, request.seconds, stop)

        self._observe(request, "tuples", "inspected (its tuples)", ask)

    def capture_asked(self, envelope: Envelope) -> None:
        """Records what the task emits. The topology manager has checked that the topology allows its values."""
        request = envelope.capture_request
        keys = frozenset((each.stream, each.field) for each in request.keys)
        shape = CaptureShape(keys, request.salt) if request.shape else None

        def ask(inspector: TaskInspector, stop: threading.Event) -> object:
            return inspector.capture(self._task, request.seconds, request.most_bytes, shape, stop)

        self._observe(request, "capture", "captured (what it emits)", ask)

    def close(self) -> None:
        """Ends the questions under way."""
        for each in (*self._looks, self._observation):
            if each is not None:
                each.stop()

    def _observe(self, request: _LongRequest, name: str, what: str, ask: _Ask) -> None:
        """Begins an observation. Declines while another one is under way: they would disturb each other."""
        if self._observation is not None:
            under_way, left_s = self._observation.what, self._observation.left_s()
            refusal = f"task {request.task_id} is being {under_way} already, for another {left_s:.1f} s; ask again then"
            self._send(Envelope(task_answer=pb.TaskAnswer(request_id=request.request_id, refusal=refusal)))
            return
        self._observation = self._begin(name, what, request.seconds, ask)
        self._await(request.request_id, self._observation, _POLL_S)

    def _begin(self, name: str, what: str, seconds: float, ask: _Ask) -> Observation:
        return Observation(name, what, seconds, lambda stop: ask(self._opened(), stop))

    def _opened(self) -> TaskInspector:
        """The inspector. The thread of a question opens it, so that the gateway never waits for an import."""
        with self._opening:
            if self._inspector is None:
                self._inspector = self._open()
            return self._inspector

    def _await(self, number: int, observation: Observation, poll_s: float) -> None:
        if observation.is_alive():
            self._reactor.after(poll_s, partial(self._await, number, observation, poll_s))
            return
        if observation is self._observation:
            self._observation = None
        else:
            self._looks.remove(observation)
        self._send(Envelope(task_answer=observation.answer(number)))
