"""Objects are counted within a budget, and no code of their classes runs."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque

import numpy as np
import pytest

from heron.api.tuple import Tuple
from heron_task_inspector.object_sizes import LARGE_BYTES, ObjectCount, entries_of, is_program, type_name


class Hostile(dict[str, object]):
    """Every method that a careless observer would call raises."""

    def __sizeof__(self) -> int:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError

    def __iter__(self) -> object:  # type: ignore[override]
        raise AssertionError

    def items(self) -> object:  # type: ignore[override]
        raise AssertionError

    def __repr__(self) -> str:
        raise AssertionError

    def __getattribute__(self, name: str) -> object:
        raise AssertionError

    __hash__ = None


class OwnMeta(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError

    __hash__ = type.__hash__


class OwnKind(metaclass=OwnMeta):
    pass


class Record:
    __slots__ = ("text",)  # a `__dict__` has another size in each Python, and may be a part of the object

    def __init__(self, text: str) -> None:
        self.text = text


def test_the_size_of_a_table_is_close_to_the_sum_of_its_parts() -> None:
    """A hundred of 20,000 entries are looked at, so the budget does not depend on the size."""
    table = {f"key {number:06}": Record(f"text {number:06}") for number in range(20_000)}
    exact = sys.getsizeof(table) + sum(
        sys.getsizeof(each) for key, record in table.items() for each in (key, record, record.text)
    )
    count = ObjectCount(5_000)
    size_bytes, is_all = count.add_whole([table], "self.table", 5_000)
    assert is_all
    assert size_bytes == pytest.approx(exact, rel=0.2)
    assert count.types[f"{__name__}.Record"][0] == pytest.approx(20_000)


def test_tuples_that_the_author_keeps_weigh_what_they_hold() -> None:
    """Their type is one of the engine, their values are data: a bolt that keeps each tuple is a usual leak."""
    received = Tuple.source("lines", "default", 1)
    kept = [received(id=object(), values=(bytes(1_000),)) for _ in range(300)]
    assert not is_program(kept[0])
    size_bytes, is_all = ObjectCount(10_000).add_whole([kept], "self.seen", 10_000)
    assert is_all
    assert size_bytes > 300 * 1_000


def test_an_object_counts_once() -> None:
    """Two attributes may hold the same table; the first one counts."""
    shared = [str(number) for number in range(50)]
    count = ObjectCount(1_000)
    first, _ = count.add_whole([shared], "self.one", 500)
    assert first > sys.getsizeof(shared)
    assert count.add_whole([shared], "self.other", 500) == (0, True)


def test_a_budget_that_is_used_up_is_said() -> None:
    """What is left out is not counted as nothing."""
    first, second = ([[object() for _ in range(50)] for _ in range(50)] for _ in range(2))
    count = ObjectCount(1_000)
    assert count.add_whole([first], "self.first", 100)[1] is False
    assert not count.is_used_up
    assert count.add_whole([second], "self.second", 10_000)[1] is False
    assert count.is_used_up


def test_only_what_no_collector_tracks_is_counted_with_a_container() -> None:
    """The other parts are found by themselves, and must not count twice."""
    rows = [["one", 1.5], ["two", 2.5]]
    count = ObjectCount(100)
    count.add(rows)
    assert set(count.types) == {"list"}
    count.add(rows[0])
    assert set(count.types) == {"list", "str", "float"}


def test_no_code_of_a_class_runs() -> None:
    """The gateway never runs user code, and a look must not change what it looks at."""
    hostile = Hostile()
    dict.__setitem__(hostile, "key", "value")
    count = ObjectCount(100)
    size_bytes, is_all = count.add_whole([hostile, OwnKind()], "self.hostile", 100)
    assert size_bytes > sys.getsizeof("key") + sys.getsizeof("value")
    assert is_all
    assert (entries_of(hostile), entries_of(OwnKind())) == (1, None)
    assert not is_program(hostile)
    assert type_name(Hostile) == f"{__name__}.Hostile"


@pytest.mark.parametrize(
    ("held", "entries"),
    [
        ({1: 2}, 1),
        ([1, 2], 2),
        ((), 0),
        ({1}, 1),
        (frozenset({1, 2}), 2),
        (deque([1]), 1),
        (b"123", 3),
        (Record(""), None),
    ],
)
def test_containers_have_entries_and_other_objects_have_none(held: object, entries: int | None) -> None:
    """The number of entries shows growth better than bytes do."""
    assert entries_of(held) == entries


def test_large_buffers_are_named_with_their_holder() -> None:
    """They may be most of the memory, and have no parts."""
    buffers = [bytes(LARGE_BYTES), bytearray(2 * LARGE_BYTES), np.zeros(LARGE_BYTES), b"small"]
    count = ObjectCount(100)
    count.add_whole([buffers], "self.cache", 100)
    assert sorted((kind, name) for kind, _, name in count.buffers) == [
        ("bytearray", "self.cache"),
        ("bytes", "self.cache"),
        ("numpy.ndarray", "self.cache"),
    ]
    assert max(size_bytes for _, size_bytes, _ in count.buffers) >= 8 * LARGE_BYTES


def test_code_and_the_engine_are_not_followed() -> None:
    """Every object leads to its module at last, and so to everything."""
    program: list[object] = [sys, Record, len, test_an_object_counts_once, [].append, ObjectCount(1)]
    assert all(map(is_program, program))
    count = ObjectCount(10_000)
    size_bytes, is_all = count.add_whole([[sys, Record, ObjectCount(1)]], "self.things", 10_000)
    assert is_all
    assert size_bytes < 1_000
    assert OrderedDict(a=1)
    assert not is_program(OrderedDict(a=1))
