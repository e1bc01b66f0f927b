"""History from a Prometheus, with a server that answers as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from heron.errors import StoreError
from heron_service_tracker.history.prometheus_history import PrometheusHistory
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.paths.history_path import HISTORY_PARAMETERS, history_answer
from heron_service_tracker.paths.parameters import parsed
from heron_service_tracker.service import TrackerOptions, watching
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

KEY = ("near", "words", "", 0, "execute-count")


class AnsweringServer(HTTPServer):
    """Answers every range query with one series, and keeps the queries."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = b""
        self.asked: list[dict[str, list[str]]] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def answers(self, *values: tuple[float, str], **labels: str) -> None:
        """Set the one series of all answers."""
        self.body = json.dumps({"data": {"result": [{"metric": labels, "values": values}]}}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers."""

    server: AnsweringServer

    def do_GET(self) -> None:
        """Answer."""
        self.server.asked.append(parse_qs(urlsplit(self.path).query))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    """The server, until the test ends."""
    with AnsweringServer() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_points_are_those_of_the_range_query(server: AnsweringServer) -> None:
    """A value is that of the step that ends then; what is no number is left out."""
    server.answers((120, "5"), (180, "NaN"), (240, "+Inf"), (300, "7.5"), component="count")
    (found,) = PrometheusHistory(server.url).read(KEY, 60, 60, 300)
    assert (found.series.component, found.series.task_id, found.series.metric) == ("count", 0, "execute-count")
    assert [(each.at_s, each.value, each.total) for each in found.points] == [(60, 5.0, 300.0), (240, 7.5, 450.0)]
    (asked,) = server.asked
    assert (asked["start"], asked["end"], asked["step"]) == (["120"], ["300"], ["60"])
    query = 'sum by (component) (rate(heron_execute_count_total{topology="words",component!=""}[60s]))'
    assert asked["query"] == [query]


def test_names_are_quoted(server: AnsweringServer) -> None:
    """A name must not become a part of the query."""
    server.answers()
    PrometheusHistory(server.url).read(("near", 'a"} or up{b="', "{c}", 3, "busy"), 60, 0, 300)
    (query,) = server.asked[0]["query"]
    assert query.count(r'topology="a\"} or up{b=\"",component!="",component="{c}",task="3"') == 2


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": {"result": [{"metric": {}, "values": [1]}]}}', b"\xff"])
def test_another_answer_is_an_error_of_the_history(server: AnsweringServer, body: bytes) -> None:
    """A proxy may answer in its place."""
    server.body = body
    with pytest.raises(StoreError, match="Prometheus"):
        PrometheusHistory(server.url).read(KEY, 60, 0, 300)


def test_a_server_that_failed_is_left_alone_for_a_while(server: AnsweringServer, clock: FakeClock) -> None:
    """Each request would wait ten seconds, and a hundred pages ask every two."""
    history = PrometheusHistory(server.url, clock.monotonic_s)
    for _ in range(3):
        with pytest.raises(StoreError, match="Prometheus"):
            history.read(KEY, 60, 0, 300)
    assert len(server.asked) == 1
    server.answers((120, "5"), component="count")
    clock.advance(31.0)
    assert history.read(KEY, 60, 0, 300)
    assert history.read(KEY, 60, 0, 300)
    assert len(server.asked) == 3


def test_a_server_that_is_away_leaves_the_own_history(
    observations: Observations, clock: FakeClock, tmp_path: Path, server: AnsweringServer
) -> None:
    """The answer says why it may be incomplete."""
    recorder = Recorder(tmp_path, 8 * 2**20, clock, gap_s=5.0)
    topology = observations.topology("near", "words")
    recorder.take(topology)
    clock.advance(1.0)
    recorder.flush(everything=True)
    values = parsed(HISTORY_PARAMETERS, [("metric", "queue-bytes")])
    at_s = int(clock.wall_s())
    server.answers((at_s, "7"), component="count")
    recorder.prometheus["near"] = PrometheusHistory(server.url)
    found = history_answer(observations, recorder, ("near", "words"), values)
    by_component = {each.component: [point.value for point in each.points] for each in found.series}
    assert (by_component, found.error) == ({"count": [7.0], "lines": [0.0]}, "")
    recorder.prometheus["near"] = PrometheusHistory("http://127.0.0.1:1")
    found = history_answer(observations, recorder, ("near", "words"), values)
    assert {each.component for each in found.series} == {"count", "lines"}
    assert "the history of Prometheus at http://127.0.0.1:1" in found.prometheus_error
    assert found.error == ""  # the tracker records
    recorder.file.close()


def test_a_profile_names_the_server(tmp_path: Path) -> None:
    """It is a key of the sink, so the tracker and the topology agree."""
    (tmp_path / "mine.yaml").write_text(
        "extends: local\nmetricsink:\n  - driver: prometheus\n    server: http://prometheus:9090\n", encoding="utf-8"
    )
    options = TrackerOptions(
        ("mine", "local"), Access(Address("127.0.0.1", 0)), config_path=tmp_path, history=tmp_path / "history"
    )
    with watching(options) as (_, recorder):
        assert recorder is not None
        assert {name: each.server for name, each in recorder.prometheus.items()} == {"mine": "http://prometheus:9090"}
