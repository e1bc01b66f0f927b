"""The file sink: its contract, file names, rotation, and incomplete lines."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from heron.errors import ConfigError
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source
from heron_metricsink_file import FileSink
from heron_testing.contracts.metricsink import EMITTED, ENGINE, SOURCE, STARTED, MetricsSinkContract
from heron_testing.faults import Faults, file_faults


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def complete_lines(path: Path) -> Iterator[dict[str, object]]:
    """Skip incomplete lines, as a reader does."""
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


class TestContract(MetricsSinkContract):
    """The file sink meets the contract of the family."""

    name = "file"
    driver_class = FileSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        self.directory = tmp_path / "logs"
        return {"directory": str(self.directory)}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "logs")

    def metrics(self) -> Sequence[Metric]:
        found = [each["metrics"] for each in complete_lines(self.directory / "metrics-1.jsonl")]
        return [metric for each in found for metric in msgspec.convert(each, list[Metric])]

    def events(self) -> Sequence[Event]:
        return [msgspec.convert(each, Event) for each in lines(self.directory / "events-1.jsonl")]


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    return FileSink.open({"directory": str(tmp_path / "logs"), "max_bytes": 4096, "files": 3})


def gauge(value: float) -> MetricsRecord:
    return MetricsRecord(SOURCE, 1.0, (Metric("queue", MetricKind.GAUGE, "bytes", value),))


def test_line_has_the_source_and_the_time(sink: FileSink, tmp_path: Path) -> None:
    """A value without its process and time has no meaning; other programs depend on this format."""
    sink.process(MetricsRecord(SOURCE, 1.5, (EMITTED,)))
    sink.close()
    assert lines(tmp_path / "logs" / "metrics-1.jsonl") == [
        {
            "at_s": 1.5,
            "source": {
                "topology": "words",
                "container_id": 1,
                "process": "instance-3",
                "incarnation": 0,
                "component": "count",
                "task_id": 3,
            },
            "metrics": [
                {
                    "name": "emitted",
                    "kind": "counter",
                    "unit": "tuples",
                    "value": 12.0,
                    "labels": {"stream": "default"},
                }
            ],
        }
    ]


def test_each_event_is_one_line_with_its_source(sink: FileSink, tmp_path: Path) -> None:
    """People search for events by name with tools that work on lines."""
    sink.process(MetricsRecord(ENGINE, 1.0, (), (STARTED, STARTED)))
    sink.close()
    found = lines(tmp_path / "logs" / "events-1.jsonl")
    assert [each["name"] for each in found] == ["process_started", "process_started"]
    assert found[0]["source"] == lines_source(ENGINE)


def lines_source(source: Source) -> object:
    return json.loads(msgspec.json.encode(source))


def test_containers_have_separate_files(sink: FileSink, tmp_path: Path) -> None:
    """The metrics managers of one machine share the folder, and two of them must never rename the same file."""
    for container in (0, 1):
        sink.process(MetricsRecord(Source("words", container, "stmgr", 0), 1.0, (EMITTED,)))
    sink.close()
    names = sorted(each.name for each in (tmp_path / "logs").iterdir())
    assert names == ["metrics-0.jsonl", "metrics-1.jsonl"]


def test_full_file_is_renamed_and_the_oldest_file_is_removed(sink: FileSink, tmp_path: Path) -> None:
    """A topology can run for months: the bound must hold, and the newest values must stay."""
    for value in range(100):
        sink.process(gauge(float(value)))
    sink.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert [each.name for each in files] == ["metrics-1.jsonl", "metrics-1.jsonl.1", "metrics-1.jsonl.2"]
    assert all(each.stat().st_size <= 4096 for each in files)
    assert all(lines(each) for each in files)
    kept = [line for each in reversed(files) for line in lines(each)]
    values = [msgspec.convert(line["metrics"], list[Metric])[0].value for line in kept]
    assert values == [float(value) for value in range(100 - len(values), 100)]


def test_a_full_single_file_starts_again_empty(tmp_path: Path) -> None:
    """With `files: 1` the content of a full file is dropped."""
    sink = FileSink.open({"directory": str(tmp_path), "max_bytes": 4096, "files": 1})
    for value in range(100):
        sink.process(gauge(float(value)))
    sink.close()
    assert [each.name for each in tmp_path.iterdir()] == ["metrics-1.jsonl"]


def test_line_after_an_incomplete_line_is_readable(sink: FileSink, tmp_path: Path) -> None:
    """A full disk or a crash can cut the last line short."""
    path = tmp_path / "logs" / "metrics-1.jsonl"
    path.parent.mkdir()
    path.write_text('{"at_s": 1.0, "sou')
    sink.process(gauge(1.0))
    sink.close()
    incomplete, complete = path.read_text().splitlines()
    assert incomplete == '{"at_s": 1.0, "sou'
    assert json.loads(complete)["at_s"] == 1.0


def test_record_after_an_unwritable_folder_is_written(sink: FileSink, tmp_path: Path) -> None:
    """The metrics manager counts a record as lost after an exception, and passes the next record."""
    (tmp_path / "logs").touch()
    with pytest.raises(OSError, match="logs"):
        sink.process(gauge(1.0))
    (tmp_path / "logs").unlink()
    sink.process(gauge(2.0))
    sink.close()
    assert len(lines(tmp_path / "logs" / "metrics-1.jsonl")) == 1


def test_only_the_owner_can_read(sink: FileSink, tmp_path: Path) -> None:
    """Metrics can be confidential."""
    sink.process(gauge(1.0))
    sink.close()
    folder = tmp_path / "logs"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "metrics-1.jsonl").stat().st_mode & 0o777 == 0o600


def test_opening_creates_no_file(sink: FileSink, tmp_path: Path) -> None:
    """Commands open sinks only to check their options."""
    sink.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"metricsink\.directory: missing"),
        ({"directory": "d", "max_bytes": 1}, r"metricsink\.max_bytes: expected `int` >= 4096; it is 1"),
        ({"directory": "d", "files": 0}, r"metricsink\.files: expected `int` >= 1; it is 0"),
        ({"directory": "d", "files": "3"}, r"metricsink\.files: expected `int`, got `str`; it is '3'"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """The error appears before any process starts."""
    with pytest.raises(ConfigError, match=message):
        FileSink.open(options)
