"""The checks of the chaos test with effectively once: each error in the committed output is found."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from chaos.campaign import Campaign
from chaos.chaos_run import ChaosRun
from chaos.committed import KEYS, PARTITIONS, CommittedFlow, CommittedVerdict, judge_committed, read_committed
from chaos.mode import Mode
from chaos.outcome import Outcome
from chaos.update_plan import MOST_TASKS, update_plan
from chaos.updates import Updates

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode
from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import packable_topology

LINES = 12
RECORD = struct.Struct("<HHIII")

Record = tuple[int, int, int, int, int]


def whole() -> list[Record]:
    """Return the exact output: partitions in turn, with the count of each key."""
    counts: Counter[int] = Counter()
    records = []
    for number in range(LINES):
        for partition in range(PARTITIONS):
            key = (partition * 7 + number) % KEYS
            counts[key] += 1
            records.append((partition, key, number, counts[key], number * 100))
    return records


def write(path: Path, records: list[Record]) -> None:
    path.write_bytes(b"".join(RECORD.pack(*each) for each in records))


def verdict(folder: Path, records: list[Record]) -> CommittedVerdict:
    """Return the verdict for records that two tasks have committed with checkpoints 9 and 10."""
    (folder / "stop").write_text(str(LINES))
    half = len(records) // 2
    for checkpoint, part in ((9, records[:half]), (10, records[half:])):
        for task in (4, 11):
            write(
                folder / f"{task}-committed-{checkpoint}", [each for each in part if (each[1] % 2 == 0) == (task == 4)]
            )
    return judge_committed(folder)


def test_the_exact_output_passes(tmp_path: Path) -> None:
    """Checkpoint 10 comes after checkpoint 9, whatever the order of the names."""
    found = verdict(tmp_path, whole())
    assert found == CommittedVerdict(PARTITIONS * LINES, 0, 0, 0, 0, ())
    assert found.passed


def without_one(records: list[Record]) -> list[Record]:
    return [*records[:100], *records[101:]]


def doubled(records: list[Record]) -> list[Record]:
    return [*records[:101], records[100], *records[101:]]


def two_of_a_key(records: list[Record]) -> tuple[int, int]:
    """Return the places of the first two lines of a key."""
    key = next(record[1] for record in records if record[3] == 2)
    first, second, *_ = (at for at, record in enumerate(records) if record[1] == key)
    return first, second


def swapped(records: list[Record]) -> list[Record]:
    first, second = two_of_a_key(records)
    records[first], records[second] = records[second], records[first]
    return records


def counts_swapped(records: list[Record]) -> list[Record]:
    """The lines are in order, and their counts are not."""
    first, second = two_of_a_key(records)
    one, two = records[first], records[second]
    records[first], records[second] = (*one[:3], two[3], one[4]), (*two[:3], one[3], two[4])
    return records


def counted_twice(records: list[Record]) -> list[Record]:
    """A count goes on from a state that has this line already."""
    partition, key, *_ = records[-1]
    records[-1] = (partition, key, records[-1][2], records[-1][3] + 1, 0)
    return records


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (without_one, (1, 0, 1, 0)),
        (doubled, (0, 1, 1, 0)),
        (swapped, (0, 0, 0, 1)),
        (counts_swapped, (0, 0, 0, 1)),
        (counted_twice, (0, 0, 1, 0)),
    ],
)
def test_each_error_is_found(
    tmp_path: Path, change: Callable[[list[Record]], list[Record]], expected: tuple[int, int, int, int]
) -> None:
    """One wrong line fails the run, and is named."""
    found = verdict(tmp_path, change(whole()))
    assert (found.lost, found.doubled, found.wrong, found.out_of_order) == expected
    assert not found.passed
    assert found.strange


def test_numbers_of_a_partition_must_be_in_order_even_if_the_counts_are(tmp_path: Path) -> None:
    """A spout that repeats an older position produces such lines."""
    records = [(0, 0, KEYS, 1, 0), (0, 0, 0, 2, 0)]
    (tmp_path / "stop").write_text(str(KEYS + 1))
    write(tmp_path / "4-committed-1", records)
    assert judge_committed(tmp_path).out_of_order == 1
    write(tmp_path / "4-committed-1", [(0, 0, 0, 1, 0), (0, 0, KEYS, 2, 0)])
    assert judge_committed(tmp_path).out_of_order == 0


@pytest.mark.parametrize(
    "record",
    [(0, 0, LINES, 1, 0), (PARTITIONS, PARTITIONS * 7, 0, 1, 0), (0, 1, 0, 1, 0)],
    ids=["a number that was not made", "a partition that does not exist", "another key"],
)
def test_a_record_of_a_line_that_no_spout_made_is_a_failure(tmp_path: Path, record: Record) -> None:
    """A damaged record is an error too."""
    assert verdict(tmp_path, [*whole(), record]).strange == ("1 records of lines that no spout made",)


@pytest.mark.parametrize("name", ["4-pending-11", "4-open"])
def test_records_that_are_not_committed_are_lost(tmp_path: Path, name: str) -> None:
    """Only committed files are output."""
    records = whole()
    write(tmp_path / name, records[-1:])
    assert verdict(tmp_path, records[:-1]).lost == 1


def test_an_empty_output_has_lost_everything(tmp_path: Path) -> None:
    """No file at all."""
    (tmp_path / "stop").write_text(str(LINES))
    assert len(read_committed(tmp_path)) == 0
    found = judge_committed(tmp_path)
    assert (found.lost, found.wrong) == (PARTITIONS * LINES, len({record[1] for record in whole()}))


def test_the_output_has_passed_a_moment_when_each_partition_has_a_later_line(tmp_path: Path) -> None:
    """One slow partition is enough for "not yet"."""
    flow = CommittedFlow(tmp_path, 0.0)
    write(tmp_path / "4-committed-1", whole()[:-1])
    assert not flow.has_passed("output", ((LINES - 1) * 100 - 1,))
    flow = CommittedFlow(tmp_path, 0.0)
    write(tmp_path / "4-committed-1", whole())
    assert flow.has_passed("output", ((LINES - 1) * 100 - 1,))


@pytest.mark.parametrize("mode", Mode)
def test_updates_depend_on_the_seed_and_change_each_component_in_both_directions(mode: Mode) -> None:
    """The same seed makes the same updates; some move whole containers."""
    plan = update_plan(3, 600.0, mode)
    assert plan == update_plan(3, 600.0, mode)
    assert plan != update_plan(4, 600.0, mode)
    assert [round(each.at_s) for each in plan] == list(range(4, 600, 20))
    found = [dict(each.parallelism) for each in plan if each.parallelism]
    others = [each for each in plan if not each.parallelism]
    assert (any(each.containers for each in others), any(each.rebalance for each in others)) == 2 * (
        mode is Mode.EFFECTIVELY_ONCE,
    )
    for name, most in MOST_TASKS[mode].items():
        assert {each[name] for each in found if name in each} > {1, most}
    assert {1 for _ in MOST_TASKS[mode]} in [set(each.values()) for each in found]
    assert {each.by_client for each in plan} == {True, False}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_updates_of_a_soak_add_and_remove_tasks_and_containers(seed: int) -> None:
    """The packing of the profile decides; these are the seeds and the ten minutes of `./dev soak`."""
    once = {TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE.value}
    topology = packable_topology({"lines": 2, "count": 4, "commit": 2}, containers=2, config=once)
    packing = RoundRobinPacking.open({})
    plan = packing.pack(topology)
    more, fewer = Counter[str](), Counter[str]()
    for update in update_plan(seed, 600.0, Mode.EFFECTIVELY_ONCE):
        before, after = plan, packing.repack(plan, topology, dict(update.parallelism))
        plan = after if update.containers is None else packing.repack_into(before, topology, {}, update.containers)
        for what, change in (
            ("tasks", len(list(plan.instances())) - len(list(before.instances()))),
            ("containers", len(plan.containers) - len(before.containers)),
        ):
            (more if change > 0 else fewer)[what] += change != 0
    assert min(more["tasks"], fewer["tasks"]) >= 5
    assert min(more["containers"], fewer["containers"]) >= 2


@pytest.mark.parametrize(
    ("verdict", "passed"),
    [(CommittedVerdict(9, 0, 0, 0, 0, ()), True), (CommittedVerdict(9, 0, 0, 1, 0, ()), False)],
    ids=["exact", "wrong"],
)
def test_the_line_of_json_has_mode_updates_and_checkpoints(verdict: CommittedVerdict, *, passed: bool) -> None:
    """One wrong key fails the run."""
    chaos_run = ChaosRun(1, mode=Mode.EFFECTIVELY_ONCE, updates=True)
    chaos_run.remove()
    campaign = Campaign(chaos_run, Updates(chaos_run, ()))
    found = Outcome(1, 0.5, campaign, verdict, 2.0, (), (), {"complete": 7, "failed": 1, "restores": 2, "number": 8})
    assert found.passed is passed
    document = json.loads(found.json())
    assert (document["mode"], document["wrong"], document["restores"]) == ("effectively-once", verdict.wrong, 2)
    assert document["checkpoints"] == {"complete": 7, "failed": 1}
    assert document["updates"] == {"complete": 0, "withdrawn": 0, "refused": 0, "unreachable": 0}
