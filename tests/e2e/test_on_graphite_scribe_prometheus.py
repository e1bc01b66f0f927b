"""A word count with metrics in Graphite, Scribe and Prometheus at once, while each of them is killed and started."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import psutil
import pytest

from heron.clock import monotonic_s
from heron.testing.servers.carbon import CarbonServer
from heron.testing.servers.prometheus import PrometheusServer
from heron.testing.servers.scribe import ScribeServer
from heron.testing.servers.server_process import ServerProcess

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

LINE = Counter(["the", "quick", "brown", "fox", "and", "the", "lazy", "dog"])
PROFILE = """\
extends: local
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
engine:
  heron.metrics.export.s: 0.25
"""
ENDS_S = 15.0  # a few seconds, on a machine that is busy with others
OUTAGE = "metrics sink {} has delivered nothing for"

Readers = tuple[Callable[[], float], ...]


class Watched:
    """The run, and what each of the three systems has of it."""

    def __init__(self, run: HeronRun, mark: str, servers: tuple[CarbonServer, ScribeServer, PrometheusServer]) -> None:
        self.run = run
        self.mark = mark
        self.carbon, self.scribe, self.prometheus = servers

    def counted(self) -> int:
        """The words that have been counted so far."""
        found = (path.read_text(encoding="utf-8") for path in self.run.out.glob("progress-*"))
        return sum(int(text or 0) for text in found)

    def flows(self) -> None:
        """Waits until a good many more are."""
        before = self.counted()
        self.run.until(lambda: self.counted() > before + 2000, "words are counted")

    def in_carbon(self) -> float:
        """The greatest total of words that Graphite has of one bolt."""
        names = [each for each in self.carbon.series(self.mark) if ".tasks.count." in each and "execute-count" in each]
        return max((value for name in names for value in self.carbon.points(name).values()), default=0.0)

    def in_scribe(self) -> float:
        """The same of Scribe."""
        records = map(json.loads, self.scribe.messages(self.mark))
        counts = [each for each in records if each["source"]["component"] == "count"]
        metrics = (metric for each in counts for metric in each["metrics"] if metric["name"] == "execute-count")
        return max((metric["value"] for metric in metrics), default=0.0)

    def in_prometheus(self) -> float:
        """The same of Prometheus, now."""
        found = self.prometheus.query('heron_execute_count_total{component="count",topology="steady_words"}')
        return max((each.value for each in found), default=0.0)

    def grows(self, read: Callable[[], float], what: str) -> None:
        """Waits until a system has newer figures than now."""
        before = read()
        self.run.until(lambda: read() > before, f"{what} gets newer figures")


@pytest.fixture
def watched(sandbox: Sandbox, carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> Watched:
    """A run with all three sinks, once each has something of it."""
    mark = f"e2e{secrets.token_hex(4)}"
    profiles = sandbox.home / ".heron" / "profiles"
    profiles.mkdir(parents=True)
    ports = {"carbon": carbon.plaintext[1], "scribe": scribe.address[1]}
    text = PROFILE.format(mark=mark, targets=prometheus.targets, **ports)
    (profiles / "sinks.yaml").write_text(text, encoding="utf-8")
    run = sandbox.start("steady_words.py", "--profile", "sinks")
    watched = Watched(run, mark, (carbon, scribe, prometheus))
    watched.flows()
    run.until(lambda: watched.in_carbon() and watched.in_scribe() and watched.in_prometheus(), "all have figures")
    return watched


def outlives(sandbox: Sandbox, watched: Watched, server: ServerProcess, sink: str, others: Readers) -> None:
    """While a server is away words are counted, the others get figures, and the status names it, and it alone."""
    server.kill()
    try:
        watched.flows()
        for number, read in enumerate(others):
            watched.grows(read, f"server {number} of the others")
        watched.run.until(lambda: OUTAGE.format(sink) in sandbox.say("status", "steady_words"), f"an outage of {sink}")
        assert len(re.findall("has delivered nothing", sandbox.say("status", "steady_words"))) == 1
    finally:
        server.start()
    watched.run.until(lambda: "delivered nothing" not in sandbox.say("status", "steady_words"), "the outage's end")


@pytest.mark.timeout(240)
def test_words_are_counted_whichever_server_dies(sandbox: Sandbox, watched: Watched) -> None:
    """Metrics are for people: no trouble with them may cost a tuple, and it must not pass unnoticed."""
    carbon, scribe, prometheus = watched.in_carbon, watched.in_scribe, watched.in_prometheus
    outlives(sandbox, watched, watched.carbon, "graphite", (scribe, prometheus))
    watched.grows(carbon, "Graphite")
    outlives(sandbox, watched, watched.scribe, "scribe", (carbon, prometheus))
    watched.grows(scribe, "Scribe")
    watched.prometheus.kill()  # who is scraped does not notice
    watched.flows()
    watched.prometheus.start()
    watched.grows(prometheus, "Prometheus")
    assert list(watched.prometheus.targets.iterdir()) != []

    (watched.run.out / "stop").touch()
    report = watched.run.finished()
    (((lines,),),) = watched.run.results("lines").values()
    counted = Counter[str]()
    for rows in watched.run.results("count").values():
        counted.update({str(word): int(str(count)) for word, count in rows})
    assert counted == {word: count * int(str(lines)) for word, count in LINE.items()}
    assert report.components["lines"].emitted == lines
    finals = [sum(int(str(row[1])) for row in rows) for rows in watched.run.results("count").values()]
    assert watched.in_carbon() == watched.in_scribe() == max(finals)
    assert list(watched.prometheus.targets.iterdir()) == []


@pytest.mark.timeout(240)
def test_a_server_that_never_answers_delays_nobody_and_no_end(sandbox: Sandbox, watched: Watched) -> None:
    """It takes connections and is silent, so that only time tells; not even the end of a run waits for it."""
    process = psutil.Process(watched.scribe.pid)
    process.suspend()
    try:
        watched.flows()
        watched.grows(watched.in_carbon, "Graphite")
        watched.grows(watched.in_prometheus, "Prometheus")
        watched.run.until(lambda: OUTAGE.format("scribe") in sandbox.say("status", "steady_words"), "an outage")
        assert OUTAGE.format("graphite") not in sandbox.say("status", "steady_words")
        (watched.run.out / "stop").touch()
        began_s = monotonic_s()
        watched.run.finished()
        assert monotonic_s() - began_s < ENDS_S
    finally:
        process.resume()
    finals = [sum(int(str(row[1])) for row in rows) for rows in watched.run.results("count").values()]
    assert watched.in_carbon() == max(finals)
