"""A run of ``steady_words.py`` with metrics in Graphite, Scribe and Prometheus, and the content of these servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from counted_words import CountedWords
from heron_testing_servers.carbon import CarbonServer
from heron_testing_servers.prometheus import PrometheusServer
from heron_testing_servers.scribe import ScribeServer
from heron_testing_servers.server_process import ServerProcess

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["OUTAGE", "MetricsServers", "WatchedWords"]

OUTAGE = "metrics sink {} has delivered nothing for"

_SINKS = """\
metricsink:
  - driver: graphite
    host: 127.0.0.1
    port: {carbon}
    prefix: {mark}
  - driver: scribe
    host: 127.0.0.1
    port: {scribe}
    metrics_category: {mark}
    events_category: {mark}-events
  - driver: prometheus
    port: 0
    targets_directory: {targets}
    silence_s: 3
engine:
  heron.metrics.export.s: 0.25
"""


class MetricsServers:
    """The three servers, and their metrics with the mark of the test."""

    def __init__(self, mark: str, carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> None:
        self.mark = mark
        self.carbon, self.scribe, self.prometheus = carbon, scribe, prometheus
        self.readers = {"graphite": self.in_carbon, "scribe": self.in_scribe, "prometheus": self.in_prometheus}
        """By name of the sink: the largest total of words of one bolt task on its server."""

    @property
    def sections(self) -> str:
        """Return the sections of a profile."""
        ports = {"carbon": self.carbon.plaintext[1], "scribe": self.scribe.address[1]}
        return _SINKS.format(mark=self.mark, targets=self.prometheus.targets, **ports)

    def server(self, sink: str) -> ServerProcess:
        """Return the server of a sink."""
        return {"graphite": self.carbon, "scribe": self.scribe, "prometheus": self.prometheus}[sink]

    def in_carbon(self) -> float:
        """Return the total on Graphite."""
        names = [each for each in self.carbon.series(self.mark) if ".tasks.count." in each and "execute-count" in each]
        return max((value for name in names for value in self.carbon.points(name).values()), default=0.0)

    def in_scribe(self) -> float:
        """Return the total on Scribe."""
        records = map(json.loads, self.scribe.messages(self.mark))
        counts = [each for each in records if each["source"]["component"] == "count"]
        metrics = (metric for each in counts for metric in each["metrics"] if metric["name"] == "execute-count")
        return max((metric["value"] for metric in metrics), default=0.0)

    def in_prometheus(self) -> float:
        """Return the present total on Prometheus."""
        found = self.prometheus.query('heron_execute_count_total{component="count",topology="steady_words"}')
        return max((each.value for each in found), default=0.0)


class WatchedWords(CountedWords):
    """The run with its servers of metrics."""

    def __init__(self, sandbox: Sandbox, run: HeronRun, profile: tuple[str, str], servers: MetricsServers) -> None:
        super().__init__(sandbox, run, profile)
        self.servers = servers

    def begins(self) -> None:
        """Wait until words are counted and all servers have metrics."""
        self.flows()
        self.run.until(lambda: all(read() for read in self.servers.readers.values()), "all servers have metrics")

    def grows(self, sink: str) -> None:
        """Wait until the server of a sink has newer figures than now."""
        self.run.grows(self.servers.readers[sink], f"{sink} gets newer figures")

    def outlives(self, sink: str) -> None:
        """Check an outage of a sink's server: words are counted, others get figures, the status names the sink."""
        server = self.servers.server(sink)
        server.kill()
        try:
            self.flows()
            for other in self.servers.readers:
                if other != sink:
                    self.grows(other)
            self.run.until(lambda: OUTAGE.format(sink) in self.status(), f"an outage of {sink}")
            assert self.status().count("has delivered nothing") == 1
        finally:
            server.start()
        self.run.until(lambda: "delivered nothing" not in self.status(), f"the end of the outage of {sink}")
        self.grows(sink)

    def ends_exactly(self) -> None:
        """End the run with exact counts; the servers with a history have the last figures."""
        super().ends_exactly()
        assert self.servers.in_carbon() == self.servers.in_scribe() == self.most()
        assert list(self.servers.prometheus.targets.iterdir()) == []
