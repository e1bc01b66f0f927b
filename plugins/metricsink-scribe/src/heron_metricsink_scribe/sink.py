"""Sends metrics and events to a Scribe server.

The server answers OK or TRY_LATER. TRY_LATER is back pressure: the server has stored nothing of the batch. The sink
keeps the batch and sends it again in smaller batches, because the server never accepts a batch above its limit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar, Self

import msgspec

from heron.errors import SinkError
from heron.spi.metricsink import MetricsRecord, MetricsSink
from heron.spi.options import decode_options
from heron_driver_kit.sink_buffer import SinkBuffer
from heron_metricsink_scribe.client import Answer, Client, Entry

__all__ = ["ScribeOptions", "ScribeSink"]

_ENTRY_BYTES = 200  # memory of an entry in Python, without its text
_LARGEST_BYTES = 8 * 1024 * 1024  # servers close the connection at 16 MB

_log = logging.getLogger(__name__)

_Category = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_.-]{1,100}$")]


class ScribeOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: the server, the categories, the size of batches and of the buffer."""

    host: Annotated[str, msgspec.Meta(min_length=1)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 1463
    metrics_category: _Category = "heron_metrics"
    events_category: _Category = "heron_events"
    batch_messages: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 100
    max_buffer_bytes: Annotated[int, msgspec.Meta(ge=65536)] = 16 * 1024 * 1024


class ScribeSink(MetricsSink):
    """Keeps messages until the flush. While the server is away or busy, it keeps as many as the buffer holds."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"events", "histograms", "history", "server"})
    options_type: ClassVar[type] = ScribeOptions

    def __init__(self, options: ScribeOptions) -> None:
        self._options = options
        self._place = f"Scribe at {options.host}:{options.port}"
        self._client = Client(options.host, options.port)
        self._buffer = SinkBuffer[Entry](self._place, options.max_buffer_bytes)
        self._batch = options.batch_messages

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the options; the first flush connects."""
        return cls(decode_options(options, ScribeOptions, "metricsink"))

    def check(self, timeout_s: float) -> str:
        """Check that the server answers a batch without messages."""
        try:
            answer = self._client.log((), timeout_s / 2)
        finally:
            self._client.close()
        return self._place if answer is Answer.OK else f"{self._place}; it accepts nothing at the moment (TRY_LATER)"

    def process(self, record: MetricsRecord) -> None:
        """Keep one message for the metrics, if there are any, and one message for each event."""
        lost: list[SinkError] = []
        for entry in self._entries(record):
            try:
                self._keep(entry)
            except SinkError as error:
                lost.append(error)
        if lost:
            raise SinkError(str(lost[0]), lost=sum(each.lost for each in lost), reason=lost[0].reason)

    def flush(self) -> None:
        """Send the kept messages."""
        self._buffer.deliver(self._send, self._batch)

    def close(self) -> None:
        """Try to send the kept messages once more, then close the connection."""
        try:
            self._buffer.deliver_at_last(self._send, self._batch)
        except SinkError as error:
            _log.warning("%s", error)
        self._client.close()

    def _entries(self, record: MetricsRecord) -> Iterator[Entry]:
        """Yield the messages of a record. JSON has no line ends, and readers of Scribe split at line ends."""
        source = asdict(record.source)
        if record.metrics:
            line = {"at_s": record.at_s, "source": source, "metrics": record.metrics}
            yield Entry(self._options.metrics_category, _json(line))
        for event in record.events:
            yield Entry(self._options.events_category, _json({**asdict(event), "source": source}))

    def _keep(self, entry: Entry) -> None:
        size = len(entry.message.encode())
        if size > _LARGEST_BYTES:
            msg = (
                f"a message of {size} bytes is dropped, because it is larger than the limit for Scribe, "
                f"{_LARGEST_BYTES} bytes; report fewer metrics or shorter labels"
            )
            raise SinkError(msg, lost=1, reason="too-large")
        self._buffer.add(entry, size + _ENTRY_BYTES)

    def _send(self, part: Sequence[Entry]) -> None:
        if self._client.log(part) is Answer.TRY_LATER:
            self._batch = max(1, len(part) // 2)
            msg = f"{self._place} answers TRY_LATER: records are kept, and sent again in smaller batches"
            raise SinkError(msg)
        self._batch = min(self._batch + 1, self._options.batch_messages)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
