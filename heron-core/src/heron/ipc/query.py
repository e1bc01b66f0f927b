"""The client of the topology manager that commands use: one request, one reply, within a time limit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self, TypeVar

from heron.clock import monotonic_s
from heron.errors import AccessError, RefusedError, RemoteProtocolError, UnreachableError, UsageError
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.letter_line import LettersAnswer, decode_letters_answer
from heron.ipc.documents.metrics_table import MetricsReader, MetricsRow, decode_metrics, read_metrics
from heron.ipc.documents.status import StatusReader, TopologyStatus
from heron.ipc.documents.traces_table import TracesTable, decode_traces
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame_limits import CONTROL_SOCKET_BYTES
from heron.ipc.keys import ClientKeys
from heron.ipc.socket import SocketContext
from heron.ipc.watched_channel import ConnectionEnd, open_watched_channel
from heron.spi.task_capture import TaskCapture, decode_capture
from heron.spi.task_memory import TaskMemory, decode_memory
from heron.spi.task_profile import TaskProfile, decode_profile
from heron.spi.task_stacks import TaskStacks, decode_stacks
from heron.spi.task_tuples import TaskTuples, decode_tuples

__all__ = ["TManagerClient"]

C = TypeVar("C")

_OTHER_KEYS = (ConnectionEnd.UNKNOWN_KEY, ConnectionEnd.FOREIGN)
_PASS_ON, _PASS_ON_S = 0.2, 2.0  # the part of a time-out, and the most, that is left when the task is given up
_OTHER_VERSION = "it may be of another version of heron-core than this command"


class TManagerClient:
    """Sends requests to the topology manager at an endpoint. Not thread-safe; a context manager.

    A client with the reader's keys may only read; the control keys also allow changes. A client has one connection.
    After that has ended, every request raises `UnreachableError`. Every method raises

    - `RefusedError` when the topology manager refuses the request; nothing has changed;
    - `AccessError` when it does not know the key; nothing has changed;
    - `UnreachableError` when it does not reply within `timeout_s`, or is gone; the outcome is unknown;
    - `RemoteProtocolError` when its reply does not decode.
    """

    def __init__(self, endpoint: str, keys: ClientKeys) -> None:
        self._endpoint = endpoint
        self._context = SocketContext(max_frame_bytes=CONTROL_SOCKET_BYTES)
        self._channel = open_watched_channel(self._context, endpoint, keys)
        self._requests = itertools.count(1)
        self._statuses = StatusReader()

    def status(self, timeout_s: float) -> TopologyStatus:
        """The present status of the topology."""
        answer = self._ask(lambda number: Envelope(status_request=pb.StatusRequest(request_id=number)), timeout_s)
        return self._statuses.read(answer.status_reply.document)

    def metrics(self, component: str, task_id: int, *, by_task: bool, timeout_s: float) -> tuple[MetricsRow, ...]:
        """The newest metrics, summed up by component or by task; "" and 0 select all."""

        def question(number: int) -> Envelope:
            return Envelope(
                metrics_request=pb.MetricsRequest(
                    request_id=number, component=component, task_id=task_id, by_task=by_task
                )
            )

        return decode_metrics(self._ask(question, timeout_s).metrics_reply.document)

    def traces(self, limit: int, timeout_s: float) -> TracesTable:
        """The newest traces that are kept, at most `limit`; 0: all."""

        def question(number: int) -> Envelope:
            return Envelope(traces_request=pb.TracesRequest(request_id=number, limit=limit))

        return decode_traces(self._ask(question, timeout_s).traces_reply.document)

    def read_task_metrics(self, names: Collection[str], reader: MetricsReader[C], timeout_s: float) -> None:
        """Give the newest metrics of these names, by task, to a reader; no names select all."""

        def question(number: int) -> Envelope:
            request = pb.MetricsRequest(request_id=number, by_task=True, names=sorted(names))
            return Envelope(metrics_request=request)

        read_metrics(self._ask(question, timeout_s).metrics_reply.document, reader)

    def stacks(self, component: str, task_id: int, timeout_s: float) -> TaskStacks | str:
        """The threads of a task; its failure to answer, for people, if it does not within `timeout_s`."""
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.StackRequest(request_id=number, component=component, task_id=task_id, wait_s=wait_s)
            return Envelope(stack_request=request)

        answer = self._ask(question, timeout_s).task_answer
        return answer.failure or decode_stacks(answer.document)

    def profile(self, component: str, task_id: int, seconds: float, timeout_s: float) -> TaskProfile | str:
        """A profile of a task over some seconds; its failure to answer, for people, if none comes `timeout_s` after.

        Raises:
            UsageError: when `seconds` is not a finite number.
        """
        _check_finite(seconds, "a profile")
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.ProfileRequest(
                request_id=number, component=component, task_id=task_id, wait_s=wait_s, seconds=seconds
            )
            return Envelope(profile_request=request)

        answer = self._ask(question, max(0.0, seconds) + timeout_s).task_answer
        return answer.failure or decode_profile(answer.document)

    def memory(self, component: str, task_id: int, seconds: float, timeout_s: float) -> TaskMemory | str:
        """The memory of a task, looked at twice with `seconds` in between; its failure to answer, as in `profile`.

        Raises:
            UsageError: when `seconds` is not a finite number.
        """
        _check_finite(seconds, "an observation of memory")
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.MemoryRequest(
                request_id=number, component=component, task_id=task_id, wait_s=wait_s, seconds=seconds
            )
            return Envelope(memory_request=request)

        answer = self._ask(question, max(0.0, seconds) + timeout_s).task_answer
        return answer.failure or decode_memory(answer.document)

    def tuples(self, component: str, task_id: int, tuples: int, seconds: float, timeout_s: float) -> TaskTuples | str:
        """The next tuples of a task, within `seconds`; its failure to answer, as in `profile`.

        Raises:
            UsageError: when `seconds` is not a finite number.
        """
        _check_finite(seconds, "a sample")
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.TuplesRequest(
                request_id=number, component=component, task_id=task_id, wait_s=wait_s, seconds=seconds, tuples=tuples
            )
            return Envelope(tuples_request=request)

        answer = self._ask(question, max(0.0, seconds) + timeout_s).task_answer
        return answer.failure or decode_tuples(answer.document)

    def capture(
        self,
        component: str,
        task_id: int,
        seconds: float,
        most_bytes: int,
        keys: Collection[tuple[str, str]] | None,
        timeout_s: float,
    ) -> TaskCapture | str:
        """What a task emits within `seconds`; its failure to answer, as in `profile`.

        With `keys`, ``(stream, field)``, the shape alone, where the values of these fields are hashed.

        Raises:
            UsageError: when `seconds` is not a finite number.
        """
        _check_finite(seconds, "a capture")
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.CaptureRequest(
                request_id=number,
                component=component,
                task_id=task_id,
                wait_s=wait_s,
                seconds=seconds,
                most_bytes=most_bytes,
                shape=keys is not None,
                keys=[pb.KeyField(stream=stream, field=field) for stream, field in sorted(keys or ())],
            )
            return Envelope(capture_request=request)

        answer = self._ask(question, max(0.0, seconds) + timeout_s).task_answer
        return answer.failure or decode_capture(answer.document)

    def letters(self, task_id: int, ids: Collection[str], timeout_s: float, *, drop: bool) -> LettersAnswer | str:
        """Drops stored dead letters of a task, or has them emitted again; its failure to answer, as in `stacks`."""
        wait_s = _wait_of(timeout_s)

        def question(number: int) -> Envelope:
            request = pb.LettersRequest(request_id=number, task_id=task_id, wait_s=wait_s, drop=drop, ids=sorted(ids))
            return Envelope(letters_request=request)

        answer = self._ask(question, timeout_s).task_answer
        return answer.failure or decode_letters_answer(answer.document)

    def change_state(self, state: str, timeout_s: float) -> None:
        """Requests ``running``, ``paused`` or ``killed``; returns when the new state is stored."""
        self._ask(lambda number: Envelope(change_state=pb.ChangeState(request_id=number, state=state)), timeout_s)

    def begin_update(self, packing: bytes, base: str, owners: bytes, code: bytes, timeout_s: float) -> None:
        """Requests the tasks of a packing plan, a document of `heron.state_nodes.plans`.

        `base` is the id of the packing plan that it was made from. `owners` are those of key groups, a document of
        `heron.planner.key_balance`; empty if they follow from the tasks. `code` is the new code of the new tasks, a
        document of `heron.planner.code_change`; empty without any. Returns when the first phase is stored.
        """

        def question(number: int) -> Envelope:
            request = pb.BeginUpdate(request_id=number, base=base, document=packing, owners=owners, code=code)
            return Envelope(begin_update=request)

        self._ask(question, timeout_s)

    def change_config(self, document: bytes, timeout_s: float) -> None:
        """Requests changes of the configuration, a document of `heron.planner.runtime_config`.

        Returns when the plan that has them is stored.
        """
        self._ask(
            lambda number: Envelope(change_config=pb.ChangeConfig(request_id=number, document=document)), timeout_s
        )

    def withdraw_update(self, reason: str, timeout_s: float) -> None:
        """Withdraws the update under way; returns when that is stored."""
        self._ask(
            lambda number: Envelope(withdraw_update=pb.WithdrawUpdate(request_id=number, reason=reason)), timeout_s
        )

    def take_checkpoint(self, timeout_s: float) -> None:
        """Requests a checkpoint; returns when it is ordered, or will be as soon as it can be taken."""
        self._ask(lambda number: Envelope(take_checkpoint=pb.TakeCheckpoint(request_id=number)), timeout_s)

    def close(self) -> None:
        """Closes the socket; idempotent."""
        self._channel.close()
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, question: Callable[[int], Envelope], timeout_s: float) -> Envelope:
        number = next(self._requests)
        self._channel.send(control_frame(question(number)))
        deadline_s = monotonic_s() + timeout_s
        while self._channel.end is None:
            left_s = deadline_s - monotonic_s()
            if self._channel.wait(left_s):
                if (answer := self._answer(number)) is not None:
                    return answer
            elif left_s <= 0:  # checked after the wait: the reply may have come while this process was stopped
                break
        end = self._channel.end
        why = end.value if end else f"nothing came within {round(timeout_s, 1 if timeout_s >= 1 else 3):g} s"
        if end in _OTHER_KEYS:
            msg = f"the topology manager at {self._endpoint} refuses this command: {why}"
            raise AccessError(msg)
        msg = f"the topology manager at {self._endpoint} did not answer: {why}"
        raise UnreachableError(msg)

    def _answer(self, number: int) -> Envelope | None:
        """The reply to this request, if the next frame is one."""
        frame = self._channel.receive()
        if frame is None:
            return None
        try:
            answer = parse_control(frame)
        except RemoteProtocolError as error:
            msg = f"the topology manager at {self._endpoint} sent an unknown reply: {error}; {_OTHER_VERSION}"
            raise RemoteProtocolError(msg) from error
        answered = getattr(getattr(answer, body_of(answer)), "request_id", 0)
        if body_of(answer) == "refused":
            if answered == number:
                raise RefusedError(answer.refused.reason)
            if not answered:  # it could not read the number of the request
                msg = f"the topology manager cannot read the request: {answer.refused.reason}; {_OTHER_VERSION}"
                raise RefusedError(msg)
        return answer if answered == number else None  # otherwise a late reply to an earlier request


def _wait_of(timeout_s: float) -> float:
    """How long the topology manager waits for a task; the rest is for its answer."""
    return timeout_s - min(_PASS_ON * timeout_s, _PASS_ON_S)


def _check_finite(seconds: float, what: str) -> None:
    if not math.isfinite(seconds):
        msg = f"{what} of {seconds} s has no end; give a number of seconds"
        raise UsageError(msg)
