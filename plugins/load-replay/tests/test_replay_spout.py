"""The spout of a replay: what it emits when, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from heron.api.component import SpoutCollector
from heron.api.context import TopologyContext
from heron_load_replay import replay_spout
from heron_load_replay.load_description import FORMAT, LoadDescription, SpoutLoad
from heron_load_replay.load_file import write_load
from heron_load_replay.load_rows import LoadRow
from heron_load_replay.plain_rows import LoadFileError, packed_row
from heron_load_replay.replay_order import ReplayOrder, order_config
from heron_load_replay.replay_result import TaskResult, merged, read_results, result_lines
from heron_load_replay.replay_spout import ReplaySpout

LOAD = LoadDescription(FORMAT, "t", 0.0, 1.0, shape=False, spouts={"words": SpoutLoad({"default": ("word",)}, (3, 1))})
ROWS = [
    LoadRow(0, "words", 1, 0, "default", 1, packed_row(("a",))),
    LoadRow(400_000, "words", 1, 0, "default", 2, packed_row(("b",))),
    LoadRow(500_000, "words", 2, 1, "default", 1, packed_row(("c",))),
]


class Clock:
    """The monotonic time of the spout."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Collector:
    """Keeps what is emitted."""

    def __init__(self) -> None:
        self.emitted: list[tuple[object, object]] = []
        self.ended = False

    def emit(self, values: Sequence[object], tup_id: object, stream: str, *_: object) -> None:
        """Keep a tuple and its id."""
        assert stream == "default"
        self.emitted.append((values[0], tup_id))

    def end(self) -> None:
        """Keep that no tuple follows."""
        self.ended = True


class Context:
    """The only task of the spout."""

    def get_component_id(self) -> str:
        """Its component."""
        return "words"

    def get_task_index(self) -> int:
        """Its place."""
        return 0

    def get_parallelism(self) -> int:
        """The tasks of the component."""
        return 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A time that the test decides."""
    made = Clock()
    monkeypatch.setattr(replay_spout, "monotonic_s", made)
    return made


def opened(folder: Path, speed: float = 1.0, rows: Sequence[LoadRow] = ROWS) -> tuple[ReplaySpout, Collector]:
    file = folder / "load.parquet"
    write_load(file, LOAD, rows)
    collector = Collector()
    spout = ReplaySpout(cast("SpoutCollector", collector))
    config: Mapping[str, Any] = order_config(ReplayOrder(str(file), str(folder), (3, 1), speed, 0.0, 1.0))
    spout.initialize(config, cast("TopologyContext", Context()))
    return spout, collector


def result_of(folder: Path) -> TaskResult:
    (found,) = read_results(folder, [("words", 0)]).values()
    assert found is not None
    return found


def test_a_tuple_is_emitted_when_it_is_due(tmp_path: Path, clock: Clock) -> None:
    """At twice the speed, half of the time; a row is emitted as often as it stands for tuples."""
    spout, collector = opened(tmp_path, speed=2.0)
    spout.next_tuple()
    assert collector.emitted == [("a", 100.0)]
    clock.now_s += 0.19
    spout.next_tuple()
    assert len(collector.emitted) == 1
    clock.now_s += 0.01
    spout.next_tuple()
    assert [each for each, _ in collector.emitted] == ["a", "b", "b"]
    clock.now_s = 100.25
    spout.next_tuple()
    assert (len(collector.emitted), collector.ended) == (4, True)


def test_latency_begins_when_a_tuple_is_due_also_if_its_spout_was_held_back(tmp_path: Path, clock: Clock) -> None:
    """Otherwise the tuples that wait most would be measured least."""
    spout, collector = opened(tmp_path)
    spout.next_tuple()
    assert spout.backlog() == 0.0
    clock.now_s += 10.0  # back pressure
    assert spout.backlog() == pytest.approx(9.6 * 4)
    spout.next_tuple()
    assert collector.emitted[1:] == [("b", 100.4), ("b", 100.4), ("c", 100.5)]
    clock.now_s += 1.0
    for _, due_s in collector.emitted[:3]:
        spout.ack(due_s)
    assert read_results(tmp_path, [("words", 0)]) == {("words", 0): None}
    spout.fail(collector.emitted[3][1])
    found = result_of(tmp_path)
    assert (found.emitted, found.acked, found.failed, found.lasted_s) == (4, 3, 1, 11.0)
    assert found.latency_most_us == 11_000_000
    assert 9_599_000 < found.lateness_most_us < 9_601_000
    whole = merged("t-replay", "load, open at 1x", 4, {("words", 0): found}, tracked=True)
    assert not whole.is_whole
    assert result_lines(whole) == [
        "load, open at 1x: 3 of 4 tuples acked, 1 failed, in 11.0 s (0 tuples/s)",
        "latency from the due time: p50 10.62 s, p90 11.00 s, p99 11.00 s, p99.9 11.00 s, max 11.00 s",
        "of it, lateness of the emit: p50 9.50 s, p90 9.60 s, p99 9.60 s, p99.9 9.60 s, max 9.60 s",
    ]


def test_a_closed_system_emits_one_tuple_in_a_call(tmp_path: Path, clock: Clock) -> None:
    """The engine looks for room between calls; a latency begins at the emit."""
    spout, collector = opened(tmp_path, speed=0.0)
    for _ in range(2):
        clock.now_s += 1.0
        spout.next_tuple()
    assert collector.emitted == [("a", 101.0), ("b", 102.0)]


def test_a_process_that_is_started_again_ends(tmp_path: Path, clock: Clock) -> None:
    """It does not know what was emitted, and a second replay would be another load."""
    opened(tmp_path)
    spout, collector = opened(tmp_path)
    spout.next_tuple()
    assert (collector.emitted, collector.ended) == ([], True)
    found = result_of(tmp_path)
    whole = merged("t-replay", "load", 4, {("words", 0): found, ("words", 1): None}, tracked=False)
    assert (found.restarted, whole.is_whole, whole.restarted, whole.missing) == (
        True,
        False,
        ("words/0",),
        ("words/1",),
    )
    assert any("was started again" in each for each in result_lines(whole))


def test_values_that_are_no_tuple_are_refused(tmp_path: Path, clock: Clock) -> None:
    """Somebody has changed the file."""
    spout, _ = opened(tmp_path, rows=[LoadRow(0, "words", 1, 0, "default", 1, b"\x80\x05N.")])
    with pytest.raises(LoadFileError, match="values of a tuple are a NoneType"):
        spout.next_tuple()
