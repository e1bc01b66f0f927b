"""Keeps the newest values for Prometheus to scrape: one page for each container of a topology."""

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
from heron_metricsink_prometheus.board import LEFT_OUT, Board
from heron_metricsink_prometheus.page_server import PageServer
from heron_metricsink_prometheus.scrapes import Scrapes
from heron_metricsink_prometheus.targets import TargetFile, reached_as

__all__ = ["PrometheusOptions", "PrometheusSink"]

_LAST_PORT = 65535

_log = logging.getLogger(__name__)


class PrometheusOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: where it listens, how Prometheus learns of it, and what a page may hold."""

    host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=_LAST_PORT)] = 9400
    ports: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 100
    targets_directory: str | None = None
    max_series: Annotated[int, msgspec.Meta(ge=1)] = 10000
    expire_s: Annotated[float, msgspec.Meta(ge=1)] = 60.0
    silence_s: Annotated[float, msgspec.Meta(ge=1)] = 180.0  # three of the longest usual intervals

    def __post_init__(self) -> None:
        """Looks at what a type cannot say."""
        if self.port and self.port + self.ports - 1 > _LAST_PORT:
            msg = f"port {self.port} and {self.ports} ports end above {_LAST_PORT}; choose a lower port, or fewer"
            raise ValueError(msg)


class PrometheusSink(MetricsSink):
    """Listens from the first record on: until then it does not know for which container."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"histograms"})
    options_type: ClassVar[type] = PrometheusOptions

    def __init__(self, options: PrometheusOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._board = Board(options.max_series, options.expire_s, clock)
        self._scrapes = Scrapes(clock)
        self._server: PageServer | None = None
        self._target: TargetFile | None = None
        self._said: set[str] = set()

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Takes the options; touches nothing yet."""
        return cls(decode_options(options, PrometheusOptions, "metricsink"))

    @property
    def port(self) -> int:
        """The port of the page; 0 before the first record."""
        return self._server.port if self._server else 0

    def process(self, record: MetricsRecord) -> None:
        """Puts the values on the page; events have no place in Prometheus."""
        reason = self._board.take(record)
        if reason and reason not in self._said:
            self._said.add(reason)
            _log.warning("values have no place on the page, more are counted as %s_total (%s)", LEFT_OUT, reason)
        self._serve(record.source)

    def flush(self) -> None:
        """Says when nobody comes for the page any more; a value is on it once it was taken."""
        if self._scrapes.silent_s() > self._options.silence_s:
            page = f"http://{reached_as(self._options.host, self.port)}/metrics"
            msg = (
                f"nobody has scraped {page} for {self._options.silence_s:g} s (metricsink.silence_s); "
                "is Prometheus running, and is this still one of its targets?"
            )
            raise SinkError(msg)

    def close(self) -> None:
        """Listens no more."""
        if self._target is not None:
            self._target.remove()
        if self._server is not None:
            self._server.close()

    def _serve(self, source: Source) -> None:
        if self._server is None:
            first, options = self._options.port, self._options
            ports = range(first, first + (options.ports if first else 1))
            self._server = PageServer(self._board, self._scrapes, options.host, ports)
            _log.info("metrics for Prometheus at http://%s/metrics", reached_as(options.host, self._server.port))
        if self._target is None and self._options.targets_directory:
            directory = Path(self._options.targets_directory).expanduser()
            self._target = TargetFile(directory, source, reached_as(self._options.host, self._server.port))
