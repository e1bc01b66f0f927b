"""Sends metrics to carbon, the receiver of Graphite.

Carbon confirms nothing, and a connection that carbon never reads looks healthy at first. If the connection breaks, the
sink sends the data of the last seconds again. A point that carbon already has is overwritten with the same value.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

import msgspec

from heron.clock import monotonic_s
from heron.errors import SinkError
from heron.spi.metricsink import MetricsRecord, MetricsSink
from heron.spi.options import decode_options
from heron_driver_kit.sink_buffer import SinkBuffer
from heron_metricsink_graphite.connection import Connection
from heron_metricsink_graphite.series import Point, as_pickle, as_plaintext, parts, points

__all__ = ["GraphiteOptions", "GraphiteSink"]

_PREFIX = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)?")
_PORTS = {"plaintext": 2003, "pickle": 2004}
_RECORDS_PER_PART = 50  # records that are sent again after a failed send
_POINT_BYTES = 250  # memory of a point in Python, without its name
_RECENT_BYTES = 1024 * 1024  # a container has tens of kilobytes of points per second
_READ_S = 5.0  # if the connection is still open after this time, carbon has read the data
_REFUSAL_S = 0.2  # a server that refuses this client closes the connection within this time

_log = logging.getLogger(__name__)


class GraphiteOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: the address and protocol of carbon, the prefix of names, the buffer."""

    host: Annotated[str, msgspec.Meta(min_length=1)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    protocol: Literal["plaintext", "pickle"] = "plaintext"
    prefix: str = "heron"
    max_buffer_bytes: Annotated[int, msgspec.Meta(ge=65536)] = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        """Check the prefix."""
        if not _PREFIX.fullmatch(self.prefix):
            msg = f"prefix {self.prefix!r} is not a Graphite name; use A-Z a-z 0-9 _ -, and dots between nodes"
            raise ValueError(msg)


class GraphiteSink(MetricsSink):
    """Keeps records until the flush. While carbon is away, it keeps as many records as the buffer holds."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"history", "server"})
    options_type: ClassVar[type] = GraphiteOptions

    def __init__(self, options: GraphiteOptions) -> None:
        port = options.port or _PORTS[options.protocol]
        self._place = f"carbon ({options.protocol}) at {options.host}:{port}"
        self._prefix = options.prefix
        self._encode = as_pickle if options.protocol == "pickle" else as_plaintext
        self._connection = Connection(options.host, port)
        self._buffer = SinkBuffer[Sequence[Point]](self._place, options.max_buffer_bytes)
        self._recent: deque[tuple[float, bytes]] = deque()  # time and message; carbon may not have read it

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the options; the first flush connects."""
        return cls(decode_options(options, GraphiteOptions, "metricsink"))

    def check(self, timeout_s: float) -> str:
        """Check that a server accepts the connection; carbon does not identify itself."""
        try:
            self._connection.open(timeout_s / 2)
            if self._connection.closes_within(min(timeout_s / 4, _REFUSAL_S)):
                msg = f"{self._place} closes the connection at once; is this carbon, and does it accept this host?"
                raise SinkError(msg)
        finally:
            self._connection.close()
        return self._place

    def process(self, record: MetricsRecord) -> None:
        """Keep the metrics until the flush. Events are dropped, because Graphite has only numbers."""
        found = tuple(points(self._prefix, record))
        if found:
            self._buffer.add(found, sum(len(name) + _POINT_BYTES for name, _ in found))

    def flush(self) -> None:
        """Send the kept records. If the connection broke, send the recent messages again first."""
        if self._connection.alive():
            self._forget(monotonic_s() - _READ_S)
        self._buffer.deliver(self._send, _RECORDS_PER_PART)

    def close(self) -> None:
        """Try to send the kept records once more, then close the connection."""
        try:
            self._buffer.deliver_at_last(self._send, _RECORDS_PER_PART)
        except SinkError as error:
            _log.warning("%s", error)
        self._connection.close()

    def _send(self, records: Sequence[Sequence[Point]]) -> None:
        messages = [self._encode(part) for part in parts(point for record in records for point in record)]
        again = not self._connection.alive()
        if again:
            messages[:0] = [message for _, message in self._recent]
        self._connection.send(b"".join(messages))  # one call, so one timeout covers all messages
        if again:
            self._recent.clear()
        sent_s = monotonic_s()
        self._recent.extend((sent_s, message) for message in messages)
        while sum(len(message) for _, message in self._recent) > _RECENT_BYTES:
            self._recent.popleft()

    def _forget(self, until_s: float) -> None:
        while self._recent and self._recent[0][0] < until_s:
            self._recent.popleft()
