"""Groupings: shuffle balances tasks, and keys go to their owners."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.api.context import TopologyContext
from heron.api.definition import GroupingKind, InputDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import EmitError
from heron.instance.output import stream_routes
from heron.instance.output.stream_routes import (
    CheckedGrouping,
    ChosenSplitter,
    KeyMemo,
    KeySplitter,
    PartialKeyMemo,
    ShuffleSplitter,
    routes_of,
)
from heron.planner.key_group import key_group
from heron.planner.key_owners import even_owners
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology

TASKS = (11, 12, 13, 14)
OWNERS = even_owners(1024, TASKS)


def test_lowest_stays_with_the_index_when_an_instance_moves() -> None:
    """The task that replaces a moved one has its state and its index, but a higher id."""
    count = bolt("count", subscription("word", GroupingKind.LOWEST), parallelism=2)
    definition = topology(spout("word", stream("word")), count)
    index = plan_index(definition, {"word": [1], "count": [5, 3]})
    assert routes_of(index, 1, definition.component("word").outputs[0], _no_custom).whole == (5,)


def _no_custom(_consumer: str, _subscription: InputDefinition) -> ICustomGrouping:
    raise AssertionError


@given(flushes=st.lists(st.integers(0, 20), max_size=20), tasks=st.integers(1, 7), start=st.integers(0, 100))
def test_shuffle_deals_evenly_over_any_flushes(flushes: list[int], tasks: int, start: int) -> None:
    """Flushes of one row are spread as evenly as large ones: no two tasks differ by more than one row."""
    splitter = ShuffleSplitter(range(tasks), start)
    counts = dict.fromkeys(range(tasks), 0)
    for size in flushes:
        rows: list[object] = list(range(size))
        found: list[object] = []
        for task, part in splitter.split(rows):
            counts[task] += len(part)
            assert part == sorted(part)  # type: ignore[type-var]  # numbers
            found += part
        assert sorted(found) == rows  # type: ignore[type-var]
    assert max(counts.values()) - min(counts.values()) <= 1


KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([datetime.UTC, datetime.timezone(datetime.timedelta(hours=3)), None])),
    st.uuids(),
    st.tuples(st.integers(), st.text()),
)


@given(key=KEYS, groups=st.sampled_from([4, 1024]))
def test_the_memo_returns_the_owner_of_the_keys_group(key: object, groups: int) -> None:
    """The first and all later look-ups agree. Numbers that compare equal share an entry and a group."""
    memo = KeyMemo(even_owners(groups, TASKS), single=True)
    expected = memo.lists[even_owners(groups, TASKS)[key_group((key,), groups)]]
    for _ in range(2):
        try:
            append = memo[key]
        except TypeError:  # a signalling NaN has no hash
            append = memo.place(key)
        append("row")
    assert expected == ["row", "row"]


def test_keys_of_several_fields_are_tuples() -> None:
    """The key of two fields is not the key of one field that holds a tuple."""
    memo = KeyMemo(OWNERS, single=False)
    memo["a", 1]("row")
    assert memo.lists[OWNERS[key_group(("a", 1), 1024)]] == ["row"]


@pytest.mark.parametrize("key", [["list"], {"a": 1}, object(), 1j, frozenset()])
@pytest.mark.parametrize("memo_class", [KeyMemo, PartialKeyMemo])
def test_other_key_types_are_rejected_by_name(key: object, memo_class: type[KeyMemo | PartialKeyMemo]) -> None:
    """The explanation is the same for hashable and unhashable types."""
    memo = memo_class(OWNERS, single=True)
    with pytest.raises(EmitError, match="cannot be grouped by"):
        memo.place(key)


def test_a_full_memo_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded with unbounded keys, and the answers stay the same."""
    monkeypatch.setattr(stream_routes, "MEMO_LIMIT", 10)
    memo, partial = (
        KeyMemo(OWNERS, single=True),
        PartialKeyMemo(OWNERS, single=True),
    )
    for number in range(100):
        memo[number](number)
        partial[number](number)
        assert len(memo) <= 10
    for task, numbers in memo.lists.items():
        assert all(OWNERS[key_group((number,), 1024)] == task for number in numbers)
    assert sum(map(len, partial.lists.values())) == 100


def test_a_partial_key_uses_two_tasks_at_most_and_always_the_same() -> None:
    """Its consumers merge at most two partial results per key. Other emitting tasks choose the same two."""
    keys = [f"key-{number}" for number in range(50)]
    seen: dict[str, set[int]] = {key: set() for key in keys}
    for _ in range(2):
        memo = PartialKeyMemo(OWNERS, single=True)
        for _ in range(20):
            for key in keys:
                memo[key](key)
        for task, rows in memo.lists.items():
            for row in set(rows):
                seen[str(row)].add(task)
    assert all(len(tasks) <= 2 for tasks in seen.values())
    assert sum(map(len, seen.values())) > 50


def test_a_hot_partial_key_is_shared_evenly() -> None:
    """Each task gets half of the rows that a fields grouping would send to one task."""
    memo = PartialKeyMemo(OWNERS, single=True)
    for number in range(1000):
        memo["hot"](number)
    sizes = sorted(len(rows) for rows in memo.lists.values())
    assert sizes == [0, 0, 500, 500]


def test_partial_keys_balance_a_skewed_load() -> None:
    """If every third row has one hot key, the fullest task has little more than the mean."""
    memo = PartialKeyMemo(OWNERS, single=True)
    for number in range(9000):
        memo["hot" if number % 3 == 0 else f"key-{number % 500}"](number)
    counts = Counter({task: len(rows) for task, rows in memo.lists.items()})
    assert max(counts.values()) < 1.1 * 9000 / 4


def test_a_partial_key_with_one_task_has_no_choice() -> None:
    """Parallelism 1 must work without a second task."""
    memo = PartialKeyMemo(even_owners(1024, (7,)), single=True)
    memo["a"]("row")
    assert memo.lists == {7: ["row"]}


@pytest.mark.parametrize("memo_class", [KeyMemo, PartialKeyMemo])
def test_a_key_splitter_carries_rows_in_order(memo_class: type[KeyMemo | PartialKeyMemo]) -> None:
    """Each task sees its rows in the order of emission, and a flush leaves nothing behind."""
    memo = memo_class(OWNERS, single=True)
    splitter = KeySplitter(memo)
    for flush in range(3):
        rows: list[object] = [f"{number}-{flush}" for number in range(100)]
        splitter.picks += [memo[row] for row in rows]
        parts = dict(splitter.split(rows))
        assert sorted(row for part in parts.values() for row in part) == sorted(rows)  # type: ignore[type-var]
        order = {row: number for number, row in enumerate(rows)}
        assert all(part == sorted(part, key=order.__getitem__) for part in parts.values())
        assert splitter.picks == []
        assert not any(memo.lists.values())


def test_chosen_rows_go_to_the_tasks_of_their_emit() -> None:
    """An emit may choose several tasks, one, or none."""
    splitter = ChosenSplitter()
    splitter.picks += [(1, 2), (), (2,)]
    assert dict(splitter.split(["a", "b", "c"])) == {1: ["a"], 2: ["a", "c"]}
    assert splitter.picks == []


class Fixed(ICustomGrouping):
    """Chooses what it is given."""

    def __init__(self, *chosen: int) -> None:
        self.chosen = list(chosen)

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """It needs no tasks."""

    def choose_tasks(self, values: tuple[object, ...]) -> list[int]:
        return self.chosen


@pytest.mark.parametrize(
    ("chosen", "shown"), [((9,), "[9]"), ((11, 10**5_000), "[<int of 16,610 bits>]"), (range(99), "[0, 1, ")]
)
def test_a_chosen_task_of_nobody_is_named_with_the_allowed_ones(chosen: tuple[int, ...], shown: str) -> None:
    """Python refuses to write very long integers, and its error would hide the grouping."""
    choose = CheckedGrouping(Fixed(*chosen), "count", TASKS)
    with pytest.raises(EmitError) as caught:
        choose(("value",))
    text = str(caught.value)
    assert text.startswith(f"custom grouping Fixed chose tasks {shown}")
    assert text.endswith("which are not of 'count'; its tasks are [11, 12, 13, 14]")
    assert len(text) < 250
