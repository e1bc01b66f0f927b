"""Sends metrics, events and traces to a collector of OTLP.

Each signal has a buffer and a request of its own, so a collector that takes no traces loses no metrics. A request that
the collector cannot take now is sent again; one that it refuses for good is dropped and counted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, cast
from urllib.parse import unquote, urlsplit

import msgspec

from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, SinkError
from heron.spi.metricsink import MetricsRecord, MetricsSink
from heron.spi.options import Secret, decode_options
from heron_driver_kit.sink_buffer import SinkBuffer
from heron_metricsink_otlp.exporter import Exporter, RejectedError, Signal, answered, request_of
from heron_metricsink_otlp.signals import events_of, metrics_of, traces_of

__all__ = ["OtlpOptions", "OtlpSink", "headers_of"]

_EXPORTERS = {
    "grpc": "heron_metricsink_otlp.grpc_exporter:GrpcExporter",
    "http": "heron_metricsink_otlp.http_exporter:HttpExporter",
}
"""Loaded by name, because each brings a library of some megabytes."""

_RECORDS_PER_REQUEST = 200
_ENTRY_BYTES = 100  # memory of an entry in Python, without its bytes

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_VALUE = re.compile(r"[ -~]*")

_log = logging.getLogger(__name__)


class OtlpOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: the collector, the transport, what is sent, and the buffer.

    `headers` has the form of OTEL_EXPORTER_OTLP_HEADERS: ``NAME=VALUE,NAME=VALUE``.
    """

    endpoint: Annotated[str, msgspec.Meta(min_length=1)]
    protocol: Literal["grpc", "http"] = "grpc"
    signals: list[Literal["metrics", "events", "traces"]] = msgspec.field(
        default_factory=lambda: ["metrics", "events", "traces"]
    )
    headers: Secret = ""
    compression: Literal["gzip", "none"] = "gzip"
    ca_file: str = ""
    max_buffer_bytes: Annotated[int, msgspec.Meta(ge=65536)] = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        """Check the address and the headers."""
        address = urlsplit(self.endpoint)
        if address.scheme not in ("http", "https") or not address.hostname or _port_is_wrong(self.endpoint):
            msg = f"endpoint {self.endpoint!r} is not a URL; give http://HOST:PORT, or https:// for TLS"
            raise ValueError(msg)
        if self.protocol == "grpc" and (address.path not in ("", "/") or address.query):
            msg = f"endpoint {self.endpoint!r} has a path; over grpc give http://HOST:PORT"
            raise ValueError(msg)
        headers_of(self.headers)


def headers_of(given: str) -> dict[str, str]:
    """Return the headers by name.

    Raises:
        ValueError: when the text is not ``NAME=VALUE,NAME=VALUE``; the message does not show the secret.
    """
    headers = {}
    for place, part in enumerate(filter(None, given.split(",")), 1):
        name, found, value = part.partition("=")
        if not found or not _NAME.fullmatch(name.strip()) or not _VALUE.fullmatch(unquote(value.strip())):
            msg = f"headers: number {place} is not NAME=VALUE in printable ASCII; write a comma in a value as %2C"
            raise ValueError(msg)
        headers[name.strip()] = unquote(value.strip())
    return headers


class OtlpSink(MetricsSink):
    """Keeps records until the flush. While the collector is away, it keeps as many as the buffers hold."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"events", "histograms", "history", "server", "traces"})
    options_type: ClassVar[type] = OtlpOptions

    def __init__(self, options: OtlpOptions) -> None:
        self._place = f"the collector at {options.endpoint}"
        self._exporter = _exporter_of(options)
        signals = [each for each in Signal if each.value in options.signals]
        self._buffers = {each: SinkBuffer[bytes](self._place, options.max_buffer_bytes) for each in signals}
        self._rejected: list[SinkError] = []

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the options; the first flush connects."""
        return cls(decode_options(options, OtlpOptions, "metricsink"))

    def check(self, timeout_s: float) -> str:
        """Check that a collector answers a request without data."""
        try:
            for signal in self._buffers:
                answer = self._exporter.export(signal, request_of(signal, ()), timeout_s / 2 / len(self._buffers))
                answered(signal, answer)
        finally:
            self._exporter.close()
        return self._place

    def process(self, record: MetricsRecord) -> None:
        """Keep the data of each signal until the flush."""
        made = {Signal.METRICS: metrics_of, Signal.EVENTS: events_of, Signal.TRACES: traces_of}
        lost: list[SinkError] = []
        for signal, buffer in self._buffers.items():
            message = made[signal](record)
            if message is None:
                continue
            data = message.SerializeToString()
            try:
                buffer.add(data, len(data) + _ENTRY_BYTES)
            except SinkError as error:
                lost.append(error)
        if lost:
            raise SinkError(str(lost[0]), lost=sum(each.lost for each in lost), reason=lost[0].reason)

    def flush(self) -> None:
        """Send the kept data, one signal after the other; the next one waits if the collector does not answer."""
        for signal, buffer in self._buffers.items():
            buffer.deliver(partial(self._send, signal), _RECORDS_PER_REQUEST)
        self._report_rejected()

    def close(self) -> None:
        """Try to send the kept data once more, then close the connection."""
        for signal, buffer in self._buffers.items():
            try:
                buffer.deliver_at_last(partial(self._send, signal), _RECORDS_PER_REQUEST)
            except SinkError as error:
                _log.warning("%s", error)
        for each in self._rejected:
            _log.warning("%s", each)
        self._rejected.clear()
        self._exporter.close()

    def _send(self, signal: Signal, parts: Sequence[bytes]) -> None:
        """Send one request. What the collector refuses for good leaves the buffer too, and is reported later."""
        try:
            refusal = answered(signal, self._exporter.export(signal, request_of(signal, parts)))
        except RejectedError as error:
            self._rejected.append(SinkError(str(error), lost=len(parts), reason="rejected"))
            return
        if refusal is not None:
            msg = f"{self._place} rejected {refusal.count} of {signal.value}: {refusal.reason or 'it gives no reason'}"
            self._rejected.append(SinkError(msg, lost=min(refusal.count, len(parts)), reason="rejected"))

    def _report_rejected(self) -> None:
        rejected, self._rejected = self._rejected, []
        if rejected:
            raise SinkError(str(rejected[0]), lost=sum(each.lost for each in rejected), reason="rejected")


def _exporter_of(options: OtlpOptions) -> Exporter:
    certificates = None
    if options.ca_file:
        try:
            certificates = Path(options.ca_file).read_bytes()
        except OSError as error:
            msg = f"metricsink: ca_file {options.ca_file} cannot be read: {error}; give a file that each container has"
            raise ConfigError(msg) from error
    make = cast("Callable[..., Exporter]", load_object(_EXPORTERS[options.protocol]))
    try:
        return make(
            options.endpoint, headers_of(options.headers), gzip=options.compression == "gzip", certificates=certificates
        )
    except (OSError, ValueError) as error:
        msg = f"metricsink: ca_file {options.ca_file} has no certificates: {error}; give a file in PEM format"
        raise ConfigError(msg) from error


def _port_is_wrong(endpoint: str) -> bool:
    try:
        return urlsplit(endpoint).port == 0
    except ValueError:
        return True
