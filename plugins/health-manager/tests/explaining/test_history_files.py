"""The history is read from files that may be rotated, cut, or missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron.errors import UsageError
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source
from heron_health_manager.explaining.history_files import read_events, read_gauges
from heron_health_manager.explaining.span import parse_since
from heron_metricsink_file.sink import FileSink

NOW_S = 1_795_612_800.0  # 2026-11-25 13:20:00 UTC


def source(process: str = "count-3", container: int = 1) -> Source:
    return Source("words", container, process, 7, "count", 3)


def record(at_s: float, value: float, process: str = "count-3", container: int = 1) -> MetricsRecord:
    metrics = (
        Metric("resident-bytes", MetricKind.GAUGE, "bytes", value),
        Metric("emit-count", MetricKind.COUNTER, "tuples", 5.0),
    )
    event = Event(f"{process}-{at_s}", "process-died", at_s, process, "", {"reason": "exit code 1"})
    return MetricsRecord(source(process, container), at_s, metrics, (event,))


def test_what_the_sink_has_written_is_read(tmp_path: Path) -> None:
    """In order of time over containers, also from rotated files."""
    sink = FileSink.open({"directory": str(tmp_path), "max_bytes": 4096})
    for at_s in range(40):
        sink.process(record(float(at_s), 10.0 * at_s))
    sink.process(record(0.5, 1.0, "split-2", container=2))
    sink.close()
    assert (tmp_path / "events-1.jsonl.1").exists()
    events = read_events(tmp_path)
    assert events is not None
    assert [each.at_s for each in events] == sorted(each.at_s for each in events)
    assert {(each.container_id, each.subject) for each in events} == {(1, "count-3"), (2, "split-2")}
    assert events[-1].attributes == {"reason": "exit code 1"}
    found = read_gauges(tmp_path, {(1, "count-3"), (2, "nothing")}, since_s=37.5)
    assert [(each.at_s, each.values) for each in found] == [
        (38.0, {"resident-bytes": 380.0}),
        (39.0, {"resident-bytes": 390.0}),
    ]


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    """A process was killed while it wrote, and a newer version writes more."""
    good = {"name": "x", "at_s": 1.0, "subject": "s", "source": {"container_id": 1, "process": "p"}, "new": [1]}
    lines = [json.dumps(good)[:-5], "", "[]", json.dumps(good), json.dumps({**good, "at_s": "soon"})]
    (tmp_path / "events-1.jsonl").write_text("\n".join(lines), encoding="utf-8")
    events = read_events(tmp_path)
    assert events is not None
    assert [(each.name, each.at_s) for each in events] == [("x", 1.0)]


def test_the_end_of_a_container_is_in_the_log_of_its_supervisor(tmp_path: Path) -> None:
    """The container itself cannot record it. An orderly end is none."""
    (tmp_path / "events-0.jsonl").write_text("", encoding="utf-8")
    at = "2026-11-25T13:20:00+00:00"
    messages = ["container 1 ended: killed by SIGKILL", "container 2 ended: done", "the job ended: yes"]
    log = "\n".join(json.dumps({"at": at, "level": "WARNING", "message": each}) for each in messages)
    (tmp_path / "supervisor.log").write_text(log, encoding="utf-8")
    events = read_events(tmp_path)
    assert events is not None
    assert [(each.at_s, each.subject, dict(each.attributes)) for each in events] == [
        (NOW_S, "container-1", {"reason": "killed by SIGKILL"})
    ]


def test_a_folder_without_events_has_no_history(tmp_path: Path) -> None:
    """The profile has another sink. That is not the same as a history in which nothing happened."""
    assert read_events(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOW_S - 90),
        ("10 min", NOW_S - 600),
        ("2h", NOW_S - 7200),
        ("0.5d", NOW_S - 43_200),
        ("2026-11-25T13:00", NOW_S - 1200),
        ("2026-11-25T14:00+01:00", NOW_S - 1200),
    ],
)
def test_a_time_is_a_span_or_a_moment(text: str, expected: float) -> None:
    """A moment without a zone is UTC, as in all logs."""
    assert parse_since(text, NOW_S).before(NOW_S) == expected


@pytest.mark.parametrize(
    ("text", "message"), [("soon", "is neither a span"), ("5", "is neither"), ("-5s", "is neither")]
)
def test_another_text_is_refused(text: str, message: str) -> None:
    """With examples of what is allowed."""
    with pytest.raises(UsageError, match=message):
        parse_since(text, NOW_S)


def test_a_moment_in_the_future_is_refused() -> None:
    """A wrong zone would otherwise look like a healthy topology."""
    with pytest.raises(UsageError, match="it is 2026-11-25T13:20 UTC now"):
        parse_since("2026-11-25T13:21", NOW_S)
