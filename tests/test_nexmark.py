"""The events of Nexmark are the published ones, and each query gives what a recount gives."""

from __future__ import annotations

import importlib
import json
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heron.errors import UsageError
from heron_streamlet import Builder, StageContext
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.simulated_runs import run_simulated
from nexmark_recount import ANSWERS

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).parent / "nexmark"
EVENTS, STEP, DELAY_US = 84_000, 11, 500  # forty-two seconds of event time: five tumbling windows
"""Of 11 partitions two are read: events whose numbers are close are too similar to tell queries apart."""
RUNNING = {"q4", "q6"}
"""They give a result again after each change: only the last one of each key is compared."""


def example(name: str) -> ModuleType:
    for folder in (ROOT / "examples" / "pipelines", ROOT / "bench" / "topology-files"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return importlib.import_module(name)


events = example("nexmark_events")
rows = example("nexmark_rows")
columns = example("nexmark_columns")
program = example("nexmark")
replay = example("nexmark_replay")
CONTEXT = StageContext("events")


class Some(events.NexmarkEvents):  # type: ignore[misc,name-defined]  # loaded by its path
    """Two partitions of many."""

    def __init__(self) -> None:
        super().__init__(EVENTS, STEP, DELAY_US)

    def partitions(self, tasks: int) -> list[str]:
        """`Source.partitions`."""
        del tasks
        return ["0", "1"]


@pytest.fixture(scope="module")
def some_events() -> list[Any]:
    return [events.event(number, DELAY_US) for number in range(EVENTS) if number % STEP < 2]


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """A struct of columns with its times in milliseconds."""
    times = {name: value for name, value in record.items() if isinstance(value, datetime)}
    return record | {name: round(value.timestamp() * 1000) for name, value in times.items()}


def compared(query: str, results: list[Any]) -> list[Any]:
    return sorted(dict(results).items() if query in RUNNING else map(tuple, results), key=repr)


@pytest.mark.parametrize(("name", "first", "delay_us"), [("first", 0, 100), ("later", 5_000_000, 10_000)])
def test_events_are_those_of_the_published_generator(name: str, first: int, delay_us: int) -> None:
    """Rates of different systems can be compared only on the same events."""
    lines = (GOLDEN / f"{name}_events.jsonl").read_text(encoding="utf-8").splitlines()
    found = [events.event(first + place, delay_us) for place in range(len(lines))]
    assert [{"kind": type(each).__name__.lower(), **each._asdict()} for each in found] == list(map(json.loads, lines))


@pytest.mark.parametrize(("begin", "end", "step", "delay_us"), [(0, 400, 1, 100), (5_000_013, 5_004_000, 7, 10_000)])
def test_columns_have_the_same_events(begin: int, end: int, step: int, delay_us: int) -> None:
    """The columns have a generator of their own, in NumPy."""
    names = ("person", "auction", "bid")
    found = [plain(row[names[row["kind"]]]) for row in columns.events_between(begin, end, step, delay_us).to_pylist()]
    assert found == [events.event(number, delay_us)._asdict() for number in range(begin, end, step)]


@pytest.mark.parametrize("first_reads", [1, 3])
def test_a_partition_is_read_again_from_a_position(first_reads: int) -> None:
    """After a death a source goes on where the last checkpoint was."""
    source = events.NexmarkEvents(100, 3)
    reader = source.open("2", None, CONTEXT)
    before = [each for _ in range(first_reads) for each in reader.read(4)]
    after = source.open("2", reader.position, CONTEXT).read(1000)
    assert before + after == [events.event(number) for number in range(2, 100, 3)]


def test_partitions_have_every_event_once_also_in_columns() -> None:
    """The last batch of a partition is shorter than the others."""
    source = columns.NexmarkColumns(events.NexmarkEvents(103, 2), rows=10)
    times = []
    for partition in source.partitions(1):
        reader = source.open(partition, None, CONTEXT)
        while batches := reader.read(1):
            times += batches[0]["kind"].to_pylist()
    assert (len(times), times.count(0), times.count(1)) == (103, 3, 8)


@pytest.mark.parametrize("numbers", [(-1,), (10, 0), (10, 1, 0)])
def test_wrong_numbers_are_refused(numbers: tuple[int, ...]) -> None:
    """A source without partitions would end at once, and look like a success."""
    with pytest.raises(UsageError, match="give at least 0 events, 1 partition and a delay of 1 microsecond"):
        events.NexmarkEvents(*numbers)


def pipeline(query: str) -> Builder:
    builder = Builder()
    rows.QUERIES[query](builder.new_source(Some()).set_num_partitions(2), 2).to_sink(Collect("results"))
    return builder


@pytest.mark.matrix
@pytest.mark.parametrize("query", rows.QUERIES)
def test_a_query_gives_what_a_recount_gives(query: str, some_events: list[Any]) -> None:
    """Two partitions, so bids come before their auctions."""
    ran = run_simulated(pipeline(query), seed=3)
    assert not ran.errors
    answer = compared(query, ANSWERS[query](some_events))
    assert compared(query, list(ran.collected["results"])) == answer
    assert len(answer) > 3


@pytest.mark.matrix
@pytest.mark.parametrize("query", columns.COLUMN_QUERIES)
def test_a_query_on_columns_gives_what_a_recount_gives(query: str, some_events: list[Any]) -> None:
    """Batches are cut within windows."""
    builder = Builder()
    source = columns.NexmarkColumns(Some(), rows=300)
    results = columns.COLUMN_QUERIES[query](builder.new_columns(source).set_num_partitions(2))
    (results if query in {"q5", "q7"} else results.rows()).to_sink(Collect("results"))
    ran = run_simulated(builder, seed=3)
    assert not ran.errors
    found = list(ran.collected["results"])
    if query == "q0":
        found = [plain(row[("person", "auction", "bid")[row["kind"]]]) for row in found]
    if query not in {"q5", "q7"}:
        found = [tuple(plain(row).values()) for row in found]
    assert compared(query, found) == compared(query, ANSWERS[query](some_events))


@pytest.mark.matrix
@pytest.mark.parametrize("query", sorted(set(rows.QUERIES) - {"q12"}))
def test_a_query_in_micro_batches_gives_what_a_recount_gives(
    query: str, some_events: list[Any], tmp_path: Path
) -> None:
    """The levels of a query on Spark, in this process. Windows of q12 follow the clock."""
    COLLECTED.clear()
    run = LevelRun(plan_of(pipeline(query).graph(), 2, "run", 700), tmp_path, None)
    run.run()
    assert not run.failures
    assert compared(query, COLLECTED["results"]) == compared(query, ANSWERS[query](some_events))


def test_a_replay_has_the_same_events_later_in_both_forms() -> None:
    """Otherwise the benches would compare different work."""
    batch = replay.later_batch(columns.events_between(0, 200), 1500)
    names = ("person", "auction", "bid")
    later = [plain(row[names[row["kind"]]]) for row in batch.to_pylist()]
    assert later == [replay.later_event(events.event(number), 1500)._asdict() for number in range(200)]
    moved = [new["time"] - events.event(number).time for number, new in enumerate(later)]
    assert set(moved) == {1500}
    assert [plain(row)["time"] for row in batch.to_pylist()] == [new["time"] for new in later]


def test_a_replayed_part_goes_on_at_a_position() -> None:
    """A micro-batch begins where the former one ended."""
    block = [events.event(number) for number in range(10)]
    reader = replay.ReplayReader(block, 2, 0, "rows")
    found = []
    while (read := reader.read(4)) is not None:
        found += read
        reader = replay.ReplayReader(block, 2, reader.position, "rows")
    assert found == block + [replay.later_event(each, replay.BLOCK_MS) for each in block]


def test_the_program_knows_which_queries_have_columns() -> None:
    """It says so before it imports what columns need."""
    assert tuple(columns.COLUMN_QUERIES) == program.IN_COLUMNS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["q3", "--columns"], "q3 has no form on columns; q0, q1, q2, q5, q7 have"),
        (["q5", "--events", "0"], "give at least 1 of each"),
        (["q5", "--per-s", "2000000"], "at most 1,000,000 events per second"),
        (["q9"], "invalid choice: 'q9'"),
    ],
)
def test_wrong_arguments_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything starts."""
    with pytest.raises(SystemExit):
        program.main(words)
    assert message in capsys.readouterr().err
