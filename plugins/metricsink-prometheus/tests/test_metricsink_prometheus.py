"""The Prometheus sink with a real Prometheus: its contract, names, and faulty readers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heron.errors import ConfigError, SinkError
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron_metricsink_prometheus import PrometheusSink, page_server
from heron_metricsink_prometheus.collector import SeriesCollector
from heron_metricsink_prometheus.names import family_name, labels_of
from heron_metricsink_prometheus.sink import PrometheusOptions
from heron_testing.contracts.metricsink import AT_S, EMITTED, ENGINE, LATENCY, QUEUE, SOURCE, MetricsSinkContract
from heron_testing.fake_clock import FakeClock
from heron_testing.ports import free_port
from heron_testing.waiting import Eventually
from heron_testing_servers.prometheus import PrometheusServer, Sample


class TestContract(MetricsSinkContract):
    """The Prometheus sink meets the contract of the family; Prometheus reports the values that it has scraped."""

    name = "prometheus"
    driver_class = PrometheusSink

    @pytest.fixture
    def options(self, prometheus: PrometheusServer) -> dict[str, object]:
        self.prometheus = prometheus
        return {"port": prometheus.target_port, "ports": 1}

    def metrics(self) -> Sequence[Metric]:
        samples = {each.labels["__name__"]: each for each in self.prometheus.scraped()}
        found = []
        if emitted := samples.get("heron_emitted_total"):
            labels = {"stream": emitted.labels["stream"]} if "stream" in emitted.labels else {}
            found.append(replace(EMITTED, value=emitted.value, labels=labels))
        if "heron_latency_seconds_count" in samples:
            found.append(replace(LATENCY, value=self._latency()))
        if queue := samples.get("heron_queue_bytes"):
            found.append(replace(QUEUE, value=queue.value))
        return found

    def events(self) -> Sequence[Event]:
        return ()

    def _latency(self) -> Histogram:
        buckets = self.prometheus.query("heron_latency_seconds_bucket")
        totals = sorted((float(each.labels["le"]), int(each.value)) for each in buckets)
        counts = [after - before for (_, before), (_, after) in zip([(0.0, 0), *totals], totals, strict=False)]
        (total,) = self.prometheus.query("heron_latency_seconds_sum")
        return Histogram(tuple(bound for bound, _ in totals[:-1]), tuple(counts), total.value)


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    """A sink at a free port."""
    sink = PrometheusSink.open({"port": free_port(), "ports": 1})
    yield sink
    sink.close()


def page(sink: PrometheusSink) -> str:
    """Read the page, like Prometheus."""
    with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/metrics", timeout=10) as answer:  # of this test
        text: str = answer.read().decode()
        return text


def values(text: str) -> dict[str, float]:
    """Return the values by name; for several series of one name the last value."""
    families = text_string_to_metric_families(text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def gauge(name: str, value: float = 1.0, **labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, "1", value, labels)


def test_labels_name_the_source(prometheus: PrometheusServer) -> None:
    """Dashboards sum over tasks and split by component. Prometheus itself sets the labels job and instance."""
    sink = PrometheusSink.open({"port": prometheus.target_port, "ports": 1})
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    (found,) = (each for each in prometheus.scraped() if each.labels["__name__"] == "heron_emitted_total")
    sink.close()
    place = {"job": "test", "instance": f"127.0.0.1:{prometheus.target_port}", "__name__": "heron_emitted_total"}
    own = {"topology": "words", "container": "1", "process": "instance-3", "component": "count", "task": "3"}
    assert found == Sample({**place, **own, "stream": "default"}, 12.0)


def test_a_restarted_prometheus_scrapes_the_newest_values(prometheus: PrometheusServer) -> None:
    """The sink does not wait for Prometheus, and totals include the missed changes."""
    sink = PrometheusSink.open({"port": prometheus.target_port, "ports": 1})
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    prometheus.kill()
    try:
        sink.process(MetricsRecord(SOURCE, AT_S + 1, (replace(EMITTED, value=20.0),)))
        sink.flush()
    finally:
        prometheus.start()
    found = [each.value for each in prometheus.scraped() if each.labels["__name__"] == "heron_emitted_total"]
    sink.close()
    assert found == [20.0]


def test_missing_scrapes_are_an_outage_until_the_next_scrape(
    prometheus: PrometheusServer, fake_clock: FakeClock, eventually: Eventually
) -> None:
    """The sink can detect an outage only by missing scrapes; `heron status` shows the error of the flush."""
    options = PrometheusOptions(port=prometheus.target_port, ports=1, silence_s=60.0)
    sink = PrometheusSink(options, fake_clock)
    prometheus.kill()  # it scrapes four times a second
    try:
        fake_clock.advance(1000.0)
        sink.flush()
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
        page(sink)
        fake_clock.advance(1000.0)
        sink.flush()  # there was no scrape yet; a page that a person reads does not count
    finally:
        prometheus.start()
    prometheus.scraped()
    prometheus.kill()
    try:
        sink.flush()
        fake_clock.advance(61.0)
        with pytest.raises(SinkError, match=rf"no scrape of http://127\.0\.0\.1:{sink.port}/\S+ for 60 s") as caught:
            sink.flush()
    finally:
        prometheus.start()
    assert caught.value.lost == 0
    eventually(lambda: flushes(sink), 30.0)
    sink.close()


def flushes(sink: PrometheusSink) -> bool:
    try:
        sink.flush()
    except SinkError:
        return False
    return True


def test_prometheus_finds_the_page_by_its_file(prometheus: PrometheusServer, eventually: Eventually) -> None:
    """Users need not choose ports. The file is removed with the page."""
    sink = PrometheusSink.open({"port": 0, "targets_directory": str(prometheus.targets)})
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    path = prometheus.targets / "heron-words-1.json"
    assert json.loads(path.read_text()) == [{"targets": [f"127.0.0.1:{sink.port}"], "labels": {}}]
    eventually(lambda: prometheus.query('heron_emitted_total{job="found"}'), 30.0)
    sink.close()
    assert list(prometheus.targets.iterdir()) == []


def test_containers_of_one_machine_take_one_port_after_the_other() -> None:
    """Each container has a metrics manager, and they do not coordinate their ports."""
    first = free_port()
    sinks = [PrometheusSink.open({"port": first, "ports": 50}) for _ in range(3)]
    for sink in sinks:
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    assert len({sink.port for sink in sinks}) == 3
    assert all(first <= sink.port < first + 50 for sink in sinks)
    for sink in sinks:
        sink.close()


def test_a_port_is_free_again_after_kill_9() -> None:
    """Connections of a dead metrics manager must not force the next metrics manager to another port."""
    port = free_port()
    program = (
        "import sys; from heron_metricsink_prometheus import PrometheusSink as S; "
        "from heron_testing.contracts.parts.second_process import numbered; "
        f"s = S.open({{'port': {port}, 'ports': 1}}); s.process(numbered(1)); print('on', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as actor:
        assert actor.stdout is not None
        assert actor.stdout.readline() == "on\n"
        with socket.create_connection(("127.0.0.1", port), 10) as reader:
            reader.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert reader.recv(10)
            os.kill(actor.pid, signal.SIGKILL)
            actor.wait(10)
    sink = PrometheusSink.open({"port": port, "ports": 1})
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    assert sink.port == port
    sink.close()


def test_error_without_a_free_port_names_the_keys() -> None:
    """Each record counts as lost until a port becomes free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sink = PrometheusSink.open({"port": port, "ports": 1})
        with pytest.raises(SinkError, match=rf"no free port .* from {port} to {port}; .*metricsink\.ports") as caught:
            sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
        assert (caught.value.lost, caught.value.reason) == (1, "unserved")
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    assert values(page(sink))["heron_emitted_total"] == 12.0
    sink.close()


def test_silent_readers_do_not_block_the_sink(sink: PrometheusSink) -> None:
    """A port scanner that connects and waits must not block the sink, and must not start any number of threads."""
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    silent = [socket.create_connection(("127.0.0.1", sink.port), 10) for _ in range(5)]
    assert values(page(sink))["heron_emitted_total"] == 12.0
    silent += [socket.create_connection(("127.0.0.1", sink.port), 10) for _ in range(20)]
    silent[-1].settimeout(5)
    assert silent[-1].recv(1) == b""  # rejected
    sink.process(MetricsRecord(SOURCE, AT_S + 1, (EMITTED,)))
    for each in silent:
        each.close()


def test_readers_that_send_a_byte_now_and_then_are_disconnected(
    sink: PrometheusSink, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """The page has eight readers at a time, so eight of them would keep Prometheus away for ever."""
    monkeypatch.setattr(page_server, "_TIMEOUT_S", 0.3)
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    slow = [socket.create_connection(("127.0.0.1", sink.port), 10) for _ in range(page_server._READERS)]
    ended = set()

    def all_ended() -> bool:
        for number, each in enumerate(slow):
            try:
                each.sendall(b"x")
            except OSError:
                ended.add(number)
        return len(ended) == len(slow)

    eventually(all_ended)
    assert values(page(sink))["heron_emitted_total"] == 12.0
    for each in slow:
        each.close()


def test_page_has_both_formats(sink: PrometheusSink) -> None:
    """Prometheus requests OpenMetrics; people and older readers request text."""
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED, QUEUE, LATENCY)))
    wanted = {"heron_emitted_total": 12.0, "heron_queue_bytes": 0.5, "heron_latency_seconds_count": 6.0}
    assert values(page(sink)).items() >= wanted.items()
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{sink.port}/metrics", headers=headers)  # of this test
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  # of this test
        assert answer.read().endswith(b"# EOF\n")


@pytest.mark.parametrize(
    ("name", "kind", "unit", "wanted"),
    [
        ("emit-count", MetricKind.COUNTER, "tuples", "heron_emit_count"),
        ("read_total", MetricKind.COUNTER, "1", "heron_read"),
        ("held-back-s", MetricKind.COUNTER, "s", "heron_held_back_seconds"),
        ("cpu-seconds", MetricKind.COUNTER, "s", "heron_cpu_seconds"),
        ("resident-bytes", MetricKind.GAUGE, "bytes", "heron_resident_bytes"),
        ("complete-latency", MetricKind.HISTOGRAM, "s", "heron_complete_latency_seconds"),
        ("user/lines/ä b", MetricKind.GAUGE, "1", "heron_user_lines_b"),
        ("complete-latency-count", MetricKind.GAUGE, "1", "heron_complete_latency_count_value"),
    ],
)
def test_names_follow_the_conventions(name: str, kind: MetricKind, unit: str, wanted: str) -> None:
    """Units are written in full, and no name looks like a part of a counter or histogram."""
    assert family_name(Metric(name, kind, unit, 1.0)) == wanted


def test_labels_of_a_metric_never_replace_labels_of_the_source() -> None:
    """Metrics about a source of tuples also have a label component."""
    labels = {"component": "words", "le": "x", "__name__": "y", "1": "z"}
    found = labels_of(SOURCE, Metric("n", MetricKind.GAUGE, "1", 1.0, labels))
    assert found["component"] == "count"
    assert found["exported_component"] == "words"
    assert found["exported_le"] == "x"
    assert "__name__" not in found
    assert set(labels_of(ENGINE, gauge("n", task="3"))) == {"topology", "container", "process", "exported_task"}


def test_a_lone_surrogate_does_not_break_the_page(sink: PrometheusSink) -> None:
    """A label that UTF-8 cannot encode would make the whole page fail."""
    sink.process(MetricsRecord(SOURCE, AT_S, (gauge("n", stream="\ud800"), EMITTED)))
    assert values(page(sink))["heron_emitted_total"] == 12.0


def test_a_series_without_reports_leaves_the_page(fake_clock: FakeClock) -> None:
    """Otherwise a task that moved to another container would count twice."""
    collector = SeriesCollector(10, 60.0, fake_clock)
    collector.add(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    fake_clock.advance(50.0)
    collector.add(MetricsRecord(ENGINE, AT_S, (QUEUE,)))
    fake_clock.advance(20.0)
    assert [family.name for family in collector.collect()] == ["heron_queue_bytes", "heron_sink_left_out"]


def test_an_earlier_incarnation_does_not_overwrite_a_later_one(fake_clock: FakeClock) -> None:
    """The last record of a dead process can be late, and its totals belong to that process."""
    collector = SeriesCollector(10, 60.0, fake_clock)
    collector.add(MetricsRecord(replace(SOURCE, incarnation=1), AT_S, (QUEUE,)))
    collector.add(MetricsRecord(replace(SOURCE, incarnation=0), AT_S, (replace(QUEUE, value=9.0),)))
    queue, _ = collector.collect()
    assert [sample.value for sample in queue.samples] == [0.5]


def test_left_out_values_are_counted_by_reason(fake_clock: FakeClock) -> None:
    """Users can create any number of series. A page has a limit, and a name has one kind."""
    collector = SeriesCollector(2, 60.0, fake_clock)
    record = MetricsRecord(
        SOURCE, AT_S, (gauge("a"), gauge("b"), gauge("c"), replace(gauge("a"), kind=MetricKind.COUNTER))
    )
    assert collector.add(record) == "series"
    *_, left_out = collector.collect()
    assert {each.labels["reason"]: each.value for each in left_out.samples} == {"series": 1, "kind": 1}


def test_error_names_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """The page works without the target file."""
    (tmp_path / "file").touch()
    sink = PrometheusSink.open({"port": free_port(), "ports": 1, "targets_directory": str(tmp_path / "file" / "x")})
    with pytest.raises(SinkError, match=r"metricsink\.targets_directory: cannot write"):
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    assert values(page(sink))["heron_emitted_total"] == 12.0
    sink.close()


def test_an_address_of_another_machine_is_refused() -> None:
    """The error of the operating system names neither the key nor a remedy."""
    sink = PrometheusSink.open({"host": "192.0.2.1", "port": 0})
    with pytest.raises(SinkError, match=r"192\.0\.2\.1.*is metricsink\.host an address of this machine"):
        sink.process(MetricsRecord(Source("w", 1, "stmgr", 0), AT_S, (EMITTED,)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": -1}, r"metricsink\.port: expected `int` >= 0; it is -1"),
        ({"port": 65500}, "port 65500 and 100 ports end above 65535"),
        ({"max_series": 0}, r"metricsink\.max_series: expected `int` >= 1; it is 0"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """The error appears before any process starts."""
    with pytest.raises(ConfigError, match=message):
        PrometheusSink.open(options)
