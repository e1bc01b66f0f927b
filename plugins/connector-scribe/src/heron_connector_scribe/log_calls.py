"""What becomes of the calls of a collector: batches for the task, answers for the clients. No sockets.

| call | what becomes of it |
|---|---|
| ``Log``, while there is room | it waits for the task; at most once it is answered at once |
| ``Log``, while there is no room, or with too many messages | TRY_LATER |
| ``Log`` that has waited for `queue_s` | TRY_LATER; no message of it was emitted |
| any other | the answer of ``fb303``, or Thrift's exception |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from heron.api import TopologyReliabilityMode
from heron.clock import Clock
from heron_connector_scribe.batch import Answer, Batch
from heron_connector_scribe.connection import ClientCall, Connection
from heron_connector_scribe.intake import Intake
from heron_connector_scribe.message_partitions import MessagePartitions
from heron_connector_scribe.refusals import Refusal, ServiceCounts
from heron_connector_scribe.service_options import ServiceOptions
from heron_connector_scribe.service_status import ServiceStatus, Status
from heron_connector_scribe.thrift_frames import (
    ONEWAY,
    Call,
    Parse,
    TooManyEntriesError,
    parse_call,
    result_reply,
)

__all__ = ["LogCalls"]

_ENTRY_BYTES = 160  # of memory for an entry, without its message


class LogCalls:
    """See the module. All methods belong to the server's thread."""

    def __init__(
        self,
        options: ServiceOptions,
        name: str,
        mode: str,
        intake: Intake,
        counts: ServiceCounts,
        clock: Clock,
        parse: Parse,
    ) -> None:
        self._parse = parse
        self._options, self._name, self._intake, self._clock = options, name, intake, clock
        self._counts = counts
        self._answers_at_once = mode == TopologyReliabilityMode.ATMOST_ONCE
        self._digests = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
        self._partitions = MessagePartitions(options.partitions, options.delimiter.encode())
        self._since_s = int(clock.wall_s())
        self._put_off = False
        self.connections = 0
        """How many there are, for the status."""

    def take(self, connection: Connection, frame: bytes) -> bytes:
        """The answer to a call; empty if it has none, or if the connection has to wait for it.

        Raises:
            MalformedFrameError: when it is no call.
        """
        connection.continues()
        call = parse_call(frame)
        if call.name == "Log" and call.kind != ONEWAY:
            return self._take_log(connection, call, frame)
        reply = self._status().reply(call, frame)
        return b"" if call.kind == ONEWAY else reply

    def take_head(self, connection: Connection, head: bytes) -> bytes:
        """The answer to a call whose body was not kept.

        Raises:
            MalformedFrameError: when it is no call.
        """
        connection.continues()
        return self._put_off_call(connection, parse_call(head), Refusal.NO_ROOM)

    def late(self, before_s: float) -> Iterator[tuple[Connection, bytes]]:
        """The answers to calls that arrived before this time, and that the task has not taken."""
        for batch in self._intake.expired(before_s):
            self._counts.refused(Refusal.TOO_LATE, "calls are answered TRY_LATER: the topology does not take them")
            yield from self._answered([(batch, Answer.TRY_LATER)])

    def answers(self) -> Iterator[tuple[Connection, bytes]]:
        """The answers that the task has given."""
        return self._answered(self._intake.answers())

    def _answered(self, answers: Iterable[tuple[Batch, Answer]]) -> Iterator[tuple[Connection, bytes]]:
        for batch, answer in answers:
            caller = batch.caller
            assert isinstance(caller, ClientCall)  # noqa: S101  # batches of this server have them
            if (connection := caller.connection) is not None:  # else it has ended, or has its answer
                connection.waiting = None
                yield connection, self._reply(connection, caller, answer)

    def _take_log(self, connection: Connection, call: Call, frame: bytes) -> bytes:
        self._counts.totals["calls"] += 1
        if not self._intake.has_room(len(frame)):
            return self._put_off_call(connection, call, Refusal.NO_ROOM)
        try:
            entries = self._parse(frame, call.offset, self._options.batch_messages, self._partitions.of)
        except TooManyEntriesError:
            return self._put_off_call(connection, call, Refusal.TOO_MANY_MESSAGES)
        self._counts.totals["messages"] += len(entries)
        caller = ClientCall(connection, call)
        if entries:
            digest = _digest(connection.host, frame[call.offset :]) if self._digests else b""
            size = len(frame) + _ENTRY_BYTES * len(entries)
            batch = Batch(entries, caller, size, self._clock.monotonic_s(), digest)
            batch.answered = self._answers_at_once
            self._intake.put(batch)
        if not entries or self._answers_at_once:
            return self._reply(connection, caller, Answer.OK)
        connection.waiting = caller
        return b""

    def _put_off_call(self, connection: Connection, call: Call, why: Refusal) -> bytes:
        self._counts.refused(why, f"calls of {connection.host} are answered TRY_LATER")
        return self._reply(connection, ClientCall(connection, call), Answer.TRY_LATER)

    def _reply(self, connection: Connection, caller: ClientCall, answer: Answer) -> bytes:
        self._counts.totals["ok" if answer is Answer.OK else "try-later"] += 1
        self._put_off = answer is Answer.TRY_LATER
        connection.answers(caller)
        return result_reply(caller.call, answer)

    def _status(self) -> ServiceStatus:
        return ServiceStatus(
            self._name,
            Status.WARNING if self._put_off else Status.ALIVE,
            "calls are answered TRY_LATER" if self._put_off else "",
            {**self._counts.totals, "connections": self.connections, "held-bytes": self._intake.held_bytes},
            self._since_s,
        )


def _digest(host: str, arguments: bytes) -> bytes:
    return hashlib.blake2b(arguments, digest_size=16, key=host.encode()[:64]).digest()
