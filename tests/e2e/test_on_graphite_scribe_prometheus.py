"""A word count with metrics in Graphite, Scribe and Prometheus, while each of them is killed and restarted."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import psutil
import pytest
from flowing import write_profile
from watched_words import OUTAGE, MetricsServers, WatchedWords

from heron.clock import monotonic_s
from servers.carbon import CarbonServer
from servers.prometheus import PrometheusServer
from servers.scribe import ScribeServer

if TYPE_CHECKING:
    from conftest import Sandbox

ENDS_S = 15.0  # a few seconds, on a busy machine


@pytest.fixture
def watched(sandbox: Sandbox, carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> WatchedWords:
    """A run with all three sinks, after each has received metrics."""
    servers = MetricsServers(f"e2e{secrets.token_hex(4)}", carbon, scribe, prometheus)
    profile = write_profile(sandbox, "sinks", f"extends: local\n{servers.sections}")
    watched = WatchedWords(sandbox, sandbox.start("steady_words.py", *profile), profile, servers)
    watched.begins()
    return watched


@pytest.mark.timeout(240)
def test_words_are_counted_when_any_server_dies(watched: WatchedWords) -> None:
    """An outage of a metrics server costs no tuple, and the status reports it."""
    for sink in watched.servers.readers:
        watched.outlives(sink)
    assert list(watched.servers.prometheus.targets.iterdir()) != []
    watched.ends_exactly()


@pytest.mark.timeout(240)
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
