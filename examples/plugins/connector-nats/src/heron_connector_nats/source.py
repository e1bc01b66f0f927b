"""A source that reads streams. Each stream is a partition, and its sequence numbers are the positions."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import nats.js.errors
from heron.errors import ConnectorError, UnreachableError, UsageError
from heron_streamlet.connectors.sources import Reader, Source
from heron_streamlet.connectors.transformer import StageContext
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamInfo

from heron_connector_nats.connection import Connection, Options

__all__ = ["NatsMessage", "NatsSource"]

_WAIT_S = 0.1
_AWAY_S = 2.0  # acks, checkpoints and other partitions wait as long while NATS is away
_START_S = 10.0
_FORGOTTEN_S = 60.0  # the server removes a consumer that asks for nothing for so long; a new one goes on

Place = tuple[str, int]
"""When the stream was created, and the sequence number of the next message."""


@dataclass(frozen=True, slots=True)
class NatsMessage:
    """An element of `NatsSource`.

    Attributes:
        time_s: when the server stored it, in seconds since 1970.
    """

    subject: str
    data: bytes
    sequence: int
    time_s: float
    headers: Mapping[str, str] = field(default_factory=dict)


class NatsSource(Source[NatsMessage]):
    """The messages of streams, each in its order, from their first message on.

    Args:
        servers: URLs such as ``nats://nats1.example.org:4222``.
        streams: the name of a stream, or a list of names.
        options: a function that returns more arguments of `nats.connect`.
    """

    bounded = False
    word = "nats"

    def __init__(self, servers: Sequence[str], streams: str | Sequence[str], options: Options | None = None) -> None:
        self._servers, self._options = list(servers), options
        self._streams = [streams] if isinstance(streams, str) else list(streams)

    def partitions(self, tasks: int) -> Sequence[str]:
        """The names of the streams.

        Raises:
            UsageError: when there is no such stream.
            UnreachableError: when NATS does not answer.
        """
        connection = Connection(self._servers, self._options)
        try:
            for each in self._streams:
                _info(connection, each, _START_S)
        finally:
            connection.close()
        return self._streams

    def open(self, partition: str, position: object, context: StageContext) -> Reader[NatsMessage]:
        """`Source.open`. Does not wait for NATS."""
        created, sequence = position if isinstance(position, tuple) else ("", 0)
        return _StreamReader(Connection(self._servers, self._options), partition, (created, sequence))


class _StreamReader:
    """A `PlacedReader` and a `MeasuredReader`."""

    def __init__(self, connection: Connection, stream: str, position: Place) -> None:
        self._connection, self._stream, self.position = connection, stream, position
        self._messages: list[NatsMessage] = []
        self._consumer: JetStreamContext.PullSubscription | None = None
        self._delivered = 0

    def read(self, limit: int) -> Sequence[NatsMessage]:
        """`Reader.read`. While NATS is away there is nothing now."""
        self._messages = []
        try:
            self._take(self._fetched(limit))
        except UnreachableError:
            self._consumer = None
        return self._messages

    def position_of(self, index: int) -> Place:
        """`PlacedReader.position_of`."""
        return self.position[0], self._messages[index].sequence

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`."""
        if self._consumer is None:
            return None
        try:
            return float(self._connection.call(lambda _: self._consumer.consumer_info(), _WAIT_S).num_pending or 0)  # type: ignore[union-attr]
        except (UnreachableError, nats.errors.Error):
            return None

    def close(self) -> None:
        """`Reader.close`."""
        if (consumer := self._consumer) is not None:
            with contextlib.suppress(UnreachableError, nats.errors.Error):  # the server removes it later
                name = self._connection.call(lambda _: consumer.consumer_info()).name
                self._connection.call(lambda stream: stream.delete_consumer(self._stream, name))
        self._connection.close()

    def _fetched(self, limit: int) -> list[Msg]:
        consumer = self._consumer or self._opened()
        try:
            return self._connection.call(lambda _: _fetch(consumer, limit), _AWAY_S)
        except nats.errors.Error:  # the server has forgotten the consumer, as after a restart
            self._consumer = None
            return []

    def _opened(self) -> JetStreamContext.PullSubscription:
        """A consumer that begins at the position.

        Raises:
            ConnectorError: when the stream does not have the position any more.
        """
        created, first = self._begin()
        sequence = self.position[1]
        self.position = created, sequence or first
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(1, self.position[1]),
            ack_policy=AckPolicy.NONE,  # the checkpoint has the position
            inactive_threshold=_FORGOTTEN_S,
        )
        self._consumer = self._connection.call(
            lambda js: js.pull_subscribe("", stream=self._stream, config=config), _AWAY_S
        )
        self._delivered = 0
        return self._consumer

    def _begin(self) -> Place:
        """When the stream was created, and its first sequence number.

        Raises:
            ConnectorError: when the stream does not have the position any more.
        """
        info = _info(self._connection, self._stream, _AWAY_S)
        created, (first, last) = str(info.created), (info.state.first_seq, info.state.last_seq)
        known, sequence = self.position
        remedy = "submit the pipeline again without its checkpoint"
        if known and known != created:
            msg = (
                f"stream {self._stream!r}: it was created again at {created}, and sequence {sequence} belongs to the "
                f"one of {known}; to read the new one, {remedy}"
            )
            raise ConnectorError(msg)
        if sequence and not first <= sequence <= last + 1:
            msg = (
                f"stream {self._stream!r}: sequence {sequence} is out of range, it has {first} to {last}: a limit of "
                f"the stream, or a purge, removed messages that were not read. To go on without them, {remedy}"
            )
            raise ConnectorError(msg)
        return created, first

    def _take(self, messages: Sequence[Msg]) -> None:
        for message in messages:
            known = message.metadata
            if self._delivered == 0 and known.sequence.stream != self.position[1]:
                self._begin()  # raises if messages were removed before the consumer began
            is_lost = known.sequence.consumer != self._delivered + 1  # with its connection
            is_removed = self._delivered > 0 and known.sequence.stream != self.position[1]
            if is_lost or is_removed:
                self._consumer = None  # a new one begins at the position, if the stream still has it
                return
            self._delivered += 1
            time_s = known.timestamp.timestamp()
            headers = dict(message.headers or {})
            self._messages.append(NatsMessage(message.subject, message.data, known.sequence.stream, time_s, headers))
            self.position = self.position[0], known.sequence.stream + 1


async def _fetch(consumer: JetStreamContext.PullSubscription, limit: int) -> list[Msg]:
    try:
        return await consumer.fetch(limit, timeout=_WAIT_S)
    except nats.errors.TimeoutError:  # nothing now
        return []


def _info(connection: Connection, stream: str, wait_s: float) -> StreamInfo:
    try:
        return connection.call(lambda js: js.stream_info(stream), wait_s)
    except nats.js.errors.NotFoundError as error:
        msg = f"there is no stream {stream!r}; create it with its subjects"
        raise UsageError(msg) from error
