"""A word count with metrics in Graphite, Scribe and Prometheus at once, while each of them is killed and started."""

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

ENDS_S = 15.0  # a few seconds, on a machine that is busy with others


@pytest.fixture
def watched(sandbox: Sandbox, carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> WatchedWords:
    """A run with all three sinks, once each has something of it."""
    servers = MetricsServers(f"e2e{secrets.token_hex(4)}", carbon, scribe, prometheus)
    profile = write_profile(sandbox, "sinks", f"extends: local\n{servers.sections}")
    watched = WatchedWords(sandbox, sandbox.start("steady_words.py", *profile), profile, servers)
    watched.begins()
    return watched


@pytest.mark.timeout(240)
def test_words_are_counted_whichever_server_dies(watched: WatchedWords) -> None:
    """Metrics are for people: no trouble with them may cost a tuple, and it must not pass unnoticed."""
    for sink in watched.servers.readers:
        watched.outlives(sink)
    assert list(watched.servers.prometheus.targets.iterdir()) != []
    watched.ends_exactly()


@pytest.mark.timeout(240)
def test_a_server_that_never_answers_delays_nobody_and_no_end(watched: WatchedWords) -> None:
    """It takes connections and is silent, so that only time tells; not even the end of a run waits for it."""
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
