"""A word count with metrics in Graphite, Scribe and Prometheus, while each is killed; the tracker's history."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import psutil
import pytest

from counted_words import CountedWords
from heron.clock import monotonic_s, wall_s
from heron_testing_servers.carbon import CarbonServer
from heron_testing_servers.prometheus import PrometheusServer
from heron_testing_servers.scribe import ScribeServer
from tracker_process import TrackerProcess
from watched_words import OUTAGE, MetricsServers, WatchedWords

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

SCRAPED = """\
extends: local
metricsink:
  - driver: prometheus
    port: 0
    targets_directory: {targets}
    server: {server}
engine:
  heron.metrics.export.s: 0.25
"""
ENDS_S = 15.0  # a few seconds, on a busy machine


@pytest.fixture
def watched(sandbox: Sandbox, carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> WatchedWords:
    """A run with all three sinks, after each has received metrics."""
    servers = MetricsServers(f"e2e{secrets.token_hex(4)}", carbon, scribe, prometheus)
    profile = sandbox.write_profile("sinks", f"extends: local\n{servers.sections}")
    watched = WatchedWords(sandbox, sandbox.start("steady_words.py", *profile), profile, servers)
    watched.begins()
    return watched


def test_words_are_counted_when_any_server_dies(watched: WatchedWords) -> None:
    """An outage of a metrics server costs no tuple, and the status reports it."""
    for sink in watched.servers.readers:
        watched.outlives(sink)
    assert list(watched.servers.prometheus.targets.iterdir()) != []
    watched.ends_exactly()


def test_a_silent_server_delays_nothing(watched: WatchedWords) -> None:
    """A server that accepts connections but stays silent delays nothing, not even the end of a run."""
    process = psutil.Process(watched.servers.scribe.pid)
    process.suspend()
    try:
        watched.flows()
        watched.grows("graphite")
        watched.grows("prometheus")
        watched.run.until(lambda: OUTAGE.format("scribe") in watched.status(), "an outage")
        assert OUTAGE.format("graphite") not in watched.status()
        (watched.run.out / "stop").touch()
        began_s = monotonic_s()
        watched.run.finished()
        assert monotonic_s() - began_s < ENDS_S
    finally:
        process.resume()
    assert watched.servers.in_carbon() == watched.most()


def test_the_tracker_shows_the_history_of_prometheus(sandbox: Sandbox, prometheus: PrometheusServer) -> None:
    """It has values of before the tracker began; without Prometheus, those that the tracker itself has recorded."""
    text = SCRAPED.format(targets=prometheus.targets, server=prometheus.url)
    profile = sandbox.write_profile("scraped", text)
    run = sandbox.start("steady_words.py", *profile)
    CountedWords(sandbox, run, profile).flows()
    counted = 'sum(rate(heron_execute_count_total{topology="steady_words",component="count"}[10s] offset 5s))'
    run.until(lambda: any(each.value > 0 for each in prometheus.query(counted)), "Prometheus has old rates")
    began_s = wall_s()
    tracker = TrackerProcess(sandbox, *profile)
    path = f"/api/v1/clusters/scraped/topologies/steady_words/history?start={int(began_s) - 60}"

    def known() -> bool:
        if tracker.state("scraped", "steady_words") != "running":
            return False
        found = tracker.get(f"{path}&metric=execute-count&component=count")
        points = [point for series in found["series"] for point in series["points"]]
        assert all(0 <= point["value"] < 1_000_000 for point in points)
        return any(point["at_s"] < began_s - 1 and point["value"] > 0 for point in points)

    run.until(known, "a value of before the tracker began")
    both = {"busy", "resident-bytes", "latency-p99-s", "restarts"}  # Prometheus has no restarts, the tracker has
    run.until(lambda: both <= {each["metric"] for each in tracker.get(path)["series"]}, "metrics of both")
    found = tracker.get(path)
    assert found["error"] == ""
    busy = [point["value"] for each in found["series"] if each["metric"] == "busy" for point in each["points"]]
    assert all(0 <= each <= 1.05 for each in busy)
    prometheus.kill()
    try:
        assert prometheus.url in tracker.get(path)["prometheus_error"]
        own = "the tracker's own record"
        run.until(lambda: any(each["metric"] == "execute-count" for each in tracker.get(path)["series"]), own)
    finally:
        prometheus.start()
    (run.out / "stop").touch()
    run.finished()
