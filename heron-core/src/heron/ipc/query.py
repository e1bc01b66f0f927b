"""The topology manager's socket as commands use it: one question, one answer, within a time limit."""

from __future__ import annotations

import itertools
from types import TracebackType
from typing import Self

from heron.clock import monotonic_s
from heron.errors import HeronError, StateUnavailableError
from heron.ipc.control_pb2 import ChangeState, Envelope, StatusRequest
from heron.ipc.envelope import body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys
from heron.ipc.socket import SocketContext
from heron.ipc.status import TopologyStatus, decode_status

__all__ = ["TManagerClient"]


class TManagerClient:
    """Asks the topology manager at an endpoint. Not thread-safe; a context manager.

    With a reader's keys it may look, with the control keys it may also change.
    """

    def __init__(self, endpoint: str, keys: ClientKeys) -> None:
        self._endpoint = endpoint
        self._context = SocketContext()
        self._channel = self._context.client_of(endpoint, keys=keys)
        self._requests = itertools.count(1)

    def status(self, timeout_s: float) -> TopologyStatus:
        """What the topology manager knows now.

        Raises:
            StateUnavailableError: when it does not answer within `timeout_s`.
        """
        request_id = next(self._requests)
        answer = self._ask(Envelope(status_request=StatusRequest(request_id=request_id)), request_id, timeout_s)
        return decode_status(answer.status_reply.document)

    def change_state(self, state: str, timeout_s: float) -> None:
        """Asks for ``running``, ``paused`` or ``killed``.

        Raises:
            HeronError: when it is refused; says why.
            StateUnavailableError: when it does not answer within `timeout_s`; whether it was done is unknown.
        """
        request_id = next(self._requests)
        question = Envelope(change_state=ChangeState(request_id=request_id, state=state))
        self._ask(question, request_id, timeout_s)

    def close(self) -> None:
        """Closes the socket; idempotent."""
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, question: Envelope, request_id: int, timeout_s: float) -> Envelope:
        self._channel.send(control_frame(question))
        deadline = monotonic_s() + timeout_s
        while (left_s := deadline - monotonic_s()) > 0:
            if not self._channel.wait(left_s):
                break
            frame = self._channel.receive()
            if frame is None:
                continue
            answer = parse_control(frame)
            body = getattr(answer, body_of(answer))
            if getattr(body, "request_id", 0) != request_id:
                continue  # the late answer to a question that was given up
            if body_of(answer) == "refused":
                raise HeronError(answer.refused.reason)
            return answer
        msg = f"the topology manager at {self._endpoint} did not answer within {timeout_s:g} s; it may be restarting"
        raise StateUnavailableError(msg)
