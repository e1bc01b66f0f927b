"""The file sink: its contract, and what is its own: file names, rotation, torn lines."""

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


def whole_lines(path: Path) -> Iterator[dict[str, object]]:
    """As a reader does: a line that was cut short is passed over."""
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


class TestContract(MetricsSinkContract):
    """The file sink keeps the family's contract."""

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
        found = [each["metrics"] for each in whole_lines(self.directory / "metrics-1.jsonl")]
        return [metric for each in found for metric in msgspec.convert(each, list[Metric])]

    def events(self) -> Sequence[Event]:
        return [msgspec.convert(each, Event) for each in lines(self.directory / "events-1.jsonl")]


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    return FileSink.open({"directory": str(tmp_path / "logs"), "max_bytes": 4096, "files": 3})


def gauge(value: float) -> MetricsRecord:
    return MetricsRecord(SOURCE, 1.0, (Metric("queue", MetricKind.GAUGE, "bytes", value),))


def test_line_says_from_whom_and_when(sink: FileSink, tmp_path: Path) -> None:
    """A figure without its process and moment is worth nothing; readers outside stand on this shape."""
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


def test_event_is_a_line_of_its_own_with_its_source(sink: FileSink, tmp_path: Path) -> None:
    """Events are looked for by name with line tools, so each has its own line."""
    sink.process(MetricsRecord(ENGINE, 1.0, (), (STARTED, STARTED)))
    sink.close()
    found = lines(tmp_path / "logs" / "events-1.jsonl")
    assert [each["name"] for each in found] == ["process_started", "process_started"]
    assert found[0]["source"] == lines_source(ENGINE)


def lines_source(source: Source) -> object:
    return json.loads(msgspec.json.encode(source))


def test_containers_have_their_own_files(sink: FileSink, tmp_path: Path) -> None:
    """The metrics managers of one machine share the folder; two of them must never rename one file."""
    for container in (0, 1):
        sink.process(MetricsRecord(Source("words", container, "stmgr", 0), 1.0, (EMITTED,)))
    sink.close()
    names = sorted(each.name for each in (tmp_path / "logs").iterdir())
    assert names == ["metrics-0.jsonl", "metrics-1.jsonl"]


def test_full_file_is_renamed_and_the_oldest_goes(sink: FileSink, tmp_path: Path) -> None:
    """A topology may run for months: the bound must hold, and the newest figures must survive."""
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


def test_one_file_is_enough(tmp_path: Path) -> None:
    """With one file a full one simply starts anew."""
    sink = FileSink.open({"directory": str(tmp_path), "max_bytes": 4096, "files": 1})
    for value in range(100):
        sink.process(gauge(float(value)))
    sink.close()
    assert [each.name for each in tmp_path.iterdir()] == ["metrics-1.jsonl"]


def test_torn_line_spoils_no_other(sink: FileSink, tmp_path: Path) -> None:
    """A full disk or a crash may cut the last line; what comes after must be readable all the same."""
    path = tmp_path / "logs" / "metrics-1.jsonl"
    path.parent.mkdir()
    path.write_text('{"at_s": 1.0, "sou')
    sink.process(gauge(1.0))
    sink.close()
    torn, whole = path.read_text().splitlines()
    assert torn == '{"at_s": 1.0, "sou'
    assert json.loads(whole)["at_s"] == 1.0


def test_unwritable_folder_loses_the_record_and_recovers(sink: FileSink, tmp_path: Path) -> None:
    """An exception means "this record is lost" to the metrics manager; the next one must have its chance."""
    (tmp_path / "logs").touch()
    with pytest.raises(OSError, match="logs"):
        sink.process(gauge(1.0))
    (tmp_path / "logs").unlink()
    sink.process(gauge(2.0))
    sink.close()
    assert len(lines(tmp_path / "logs" / "metrics-1.jsonl")) == 1


def test_only_the_owner_can_read(sink: FileSink, tmp_path: Path) -> None:
    """Figures tell what a company does; the folder and its files are the owner's."""
    sink.process(gauge(1.0))
    sink.close()
    folder = tmp_path / "logs"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "metrics-1.jsonl").stat().st_mode & 0o777 == 0o600


def test_opening_touches_nothing(sink: FileSink, tmp_path: Path) -> None:
    """Commands open sinks only to have their options checked."""
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
    """A limit that cannot work is found before anything starts."""
    with pytest.raises(ConfigError, match=message):
        FileSink.open(options)
