"""Sends metrics to carbon, the receiver of Graphite.

Carbon says nothing about what it takes, and a connection that it will never read looks like any other at first. So what
was sent in the last seconds is sent again when its connection turns out to be broken: a point that carbon has already
is written over by itself.
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
from heron.spi.sink_buffer import SinkBuffer
from heron_metricsink_graphite.connection import Connection
from heron_metricsink_graphite.encoding import as_pickle, as_plaintext, parts
from heron_metricsink_graphite.series import Point, points

__all__ = ["GraphiteOptions", "GraphiteSink"]

_PREFIX = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)?")
_PORTS = {"plaintext": 2003, "pickle": 2004}
_RECORDS_A_PART = 50  # what is sent again when sending breaks off
_POINT_BYTES = 250  # what Python needs for a point beside its name
_RECENT_BYTES = 1024 * 1024  # a second's points of a container are some ten thousand bytes
_READ_S = 5.0  # a carbon that has not ended the connection by then has read what was sent
_LISTEN_S = 0.2  # who does not want us ends the connection by then

_log = logging.getLogger(__name__)


class GraphiteOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: where carbon is, how it is spoken to, what names begin with."""

    host: Annotated[str, msgspec.Meta(min_length=1)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    protocol: Literal["plaintext", "pickle"] = "plaintext"
    prefix: str = "heron"
    max_buffer_bytes: Annotated[int, msgspec.Meta(ge=65536)] = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        """Looks at what a type cannot say."""
        if not _PREFIX.fullmatch(self.prefix):
            msg = f"prefix {self.prefix!r} is no name of Graphite's; use A-Z a-z 0-9 _ - with dots between"
            raise ValueError(msg)


class GraphiteSink(MetricsSink):
    """Keeps records until the flush; while carbon is away, as many as the buffer holds."""

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
        self._recent: deque[tuple[float, bytes]] = deque()  # sent when; carbon may end without having read it

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Takes the options; connects at the first flush."""
        return cls(decode_options(options, GraphiteOptions, "metricsink"))

    def check(self, timeout_s: float) -> str:
        """Somebody listens there; carbon does not say who it is."""
        try:
            self._connection.open(timeout_s / 2)
            if self._connection.ends_within(min(timeout_s / 4, _LISTEN_S)):
                msg = f"{self._place} ends the connection at once; is that port carbon's, and open to this machine?"
                raise SinkError(msg)
        finally:
            self._connection.close()
        return self._place

    def process(self, record: MetricsRecord) -> None:
        """Keeps the metrics; events have no place in Graphite."""
        found = tuple(points(self._prefix, record))
        if found:
            self._buffer.add(found, sum(len(name) + _POINT_BYTES for name, _ in found))

    def flush(self) -> None:
        """Sends what is kept, before it what was sent lately if the connection has broken since."""
        if self._connection.alive():
            self._forget(monotonic_s() - _READ_S)
        self._buffer.deliver(self._send, _RECORDS_A_PART)

    def close(self) -> None:
        """Tries a last time, and ends the connection."""
        try:
            self._buffer.deliver_at_last(self._send, _RECORDS_A_PART)
        except SinkError as error:
            _log.warning("%s", error)
        self._connection.close()

    def _send(self, records: Sequence[Sequence[Point]]) -> None:
        messages = [self._encode(part) for part in parts(point for record in records for point in record)]
        again = not self._connection.alive()
        if again:
            messages[:0] = [message for _, message in self._recent]
        self._connection.send(b"".join(messages))  # at once, so that one time limit holds for all of it
        if again:
            self._recent.clear()
        sent_s = monotonic_s()
        self._recent.extend((sent_s, message) for message in messages)
        while sum(len(message) for _, message in self._recent) > _RECENT_BYTES:
            self._recent.popleft()

    def _forget(self, until_s: float) -> None:
        while self._recent and self._recent[0][0] < until_s:
            self._recent.popleft()
