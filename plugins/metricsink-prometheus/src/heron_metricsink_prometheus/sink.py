"""Keeps the newest values for Prometheus to scrape, on one page for each container of a topology."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import Clock
from heron.errors import SinkError
from heron.spi.metricsink import MetricsRecord, MetricsSink, Source
from heron.spi.options import decode_options
from heron_metricsink_prometheus.collector import LEFT_OUT, SeriesCollector
from heron_metricsink_prometheus.page_server import PageServer, Scrapes
from heron_metricsink_prometheus.target_file import TargetFile, page_address

__all__ = ["PrometheusOptions", "PrometheusSink"]

_LAST_PORT = 65535

_log = logging.getLogger(__name__)


class PrometheusOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: the address of the page, the target file, and the limits of a page.

    `server` is the Prometheus that scrapes. The sink itself does not use it: the tracker reads its history there.
    """

    host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=_LAST_PORT)] = 9400
    ports: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 100
    targets_directory: str | None = None
    max_series: Annotated[int, msgspec.Meta(ge=1)] = 10000
    expire_s: Annotated[float, msgspec.Meta(ge=1)] = 60.0
    silence_s: Annotated[float, msgspec.Meta(ge=1)] = 180.0  # three scrape intervals of 60 s, the default of Prometheus
    server: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s?#@]+$")] | None = None

    def __post_init__(self) -> None:
        """Check the range of ports."""
        if self.port and self.port + self.ports - 1 > _LAST_PORT:
            msg = f"port {self.port} and {self.ports} ports end above {_LAST_PORT}; choose a lower port or fewer ports"
            raise ValueError(msg)


class PrometheusSink(MetricsSink):
    """Listens from the first record on, because only a record names the container."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"histograms"})
    options_type: ClassVar[type] = PrometheusOptions

    def __init__(self, options: PrometheusOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._collector = SeriesCollector(options.max_series, options.expire_s, clock)
        self._scrapes = Scrapes(clock)
        self._server: PageServer | None = None
        self._target: TargetFile | None = None
        self._warned: set[str] = set()  # reasons

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the options; the first record opens the port."""
        return cls(decode_options(options, PrometheusOptions, "metricsink"))

    @property
    def port(self) -> int:
        """Return the port of the page; 0 before the first record."""
        return self._server.port if self._server else 0

    def process(self, record: MetricsRecord) -> None:
        """Put the values on the page. Events are dropped, because Prometheus has only numbers."""
        reason = self._collector.add(record)
        if reason and reason not in self._warned:
            self._warned.add(reason)
            _log.warning("the page leaves out values (reason: %s); %s_total counts them", reason, LEFT_OUT)
        self._serve(record.source)

    def flush(self) -> None:
        """Check that Prometheus still scrapes; `process` has put each value on the page.

        Raises:
            SinkError: when the last scrape is older than `silence_s`.
        """
        if self._scrapes.silent_s() > self._options.silence_s:
            page = f"http://{page_address(self._options.host, self.port)}/metrics"
            msg = (
                f"no scrape of {page} for {self._options.silence_s:g} s (metricsink.silence_s); "
                "is Prometheus running, and is this page one of its targets?"
            )
            raise SinkError(msg)

    def close(self) -> None:
        """Remove the target file and stop the server."""
        if self._target is not None:
            self._target.remove()
        if self._server is not None:
            self._server.close()

    def _serve(self, source: Source) -> None:
        if self._server is None:
            first, options = self._options.port, self._options
            ports = range(first, first + (options.ports if first else 1))
            self._server = PageServer(self._collector, self._scrapes, options.host, ports)
            _log.info("metrics for Prometheus at http://%s/metrics", page_address(options.host, self._server.port))
        if self._target is None and self._options.targets_directory:
            directory = Path(self._options.targets_directory).expanduser()
            self._target = TargetFile(directory, source, page_address(self._options.host, self._server.port))
