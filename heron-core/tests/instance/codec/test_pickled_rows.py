"""Values that share objects, contain themselves or are nested deeply travel at the size that pickle gives them."""

from __future__ import annotations

import pickle
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from heron.instance.codec.batch_codec import decode_values
from heron.instance.codec.pickled_rows import RowPickles
from heron.instance.codec.serializers import PICKLE
from heron.spi.serializer import UndecodableValue

MEGABYTE = "x" * 1_000_000


def nested(levels: int, leaf: object) -> object:
    value = leaf
    for _ in range(levels):
        value = [value, value]
    return value


def own_size(columns: list[Sequence[object]]) -> int:
    return sum(len(pickle.dumps(row, 5)) for row in zip(*columns, strict=True))


@pytest.mark.parametrize(
    "columns",
    [
        [[nested(12, "y" * 65_000)]],
        [[nested(18, ["y" * 10_000])]],
        [[nested(40, "y" * 1_000_000)]],
        [[MEGABYTE]] * 20,
        [[nested(20, MEGABYTE), 1], ["a", "b"]],
        [[list(range(400_000))]],
        [[MEGABYTE, "a", "b"], [b"c", b"d", 3]],
    ],
    ids=["twelve", "eighteen", "forty", "fields", "rows", "plain", "text"],
)
def test_a_large_batch_is_as_small_as_pickle_makes_it(columns: list[Sequence[object]]) -> None:
    """Without a memo, forty levels would be a trillion lists, and one megabyte in 20 fields 20 megabytes."""
    payload = PICKLE.encode(columns)
    assert len(payload) <= 1.05 * own_size(columns)
    decoded = PICKLE.decode(payload)
    assert pickle.dumps(list(zip(*decoded, strict=True))) == pickle.dumps(list(zip(*columns, strict=True)))


class Held:
    """Pickles its data as arrays of NumPy and Arrow do."""

    def __init__(self, data: object) -> None:
        self.data = bytes(data)  # type: ignore[call-overload]  # it arrives as another type

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return Held, (pickle.PickleBuffer(self.data),)


@pytest.mark.parametrize("size", [100, 100_000, 3_000_000])
def test_buffers_of_arrays_travel(size: int) -> None:
    """The pickler hands a buffer of 64 KiB or more to the output as it is: record batches have such buffers."""
    sent = [Held(bytes([number]) * size) for number in range(3)]
    (arrived,) = PICKLE.decode(PICKLE.encode([sent]))
    assert [each.data for each in arrived] == [each.data for each in sent]  # type: ignore[attr-defined]


def test_rows_stay_independent_of_each_other() -> None:
    """A value that was emitted twice must not become one object at the receiver."""
    shared = nested(18, "abc")
    first, second = PICKLE.decode(PICKLE.encode([[shared, shared]]))[0]
    assert first is not second
    assert first[0] is first[1]  # type: ignore[index]  # within a row, what is shared stays shared


def sulk() -> object:
    """Raises where a value is decoded."""
    raise LookupError


class Sulking:
    """Encodes, and does not decode."""

    def __reduce__(self) -> tuple[object, ...]:
        return sulk, ()


def test_a_row_that_does_not_decode_fails_alone() -> None:
    """As in a batch without shared objects."""
    rows = [pickle.dumps(("a", 1)), pickle.dumps(("b", Sulking())), pickle.dumps(("c", 3))]
    payload = pickle.dumps(RowPickles(rows, 2), 5)
    names, numbers = decode_values(payload, 3, PICKLE)
    assert [names[0], names[2], numbers[0], numbers[2]] == ["a", "c", 1, 3]
    assert isinstance(names[1], UndecodableValue)
    assert isinstance(numbers[1], UndecodableValue)
    assert names[1].kind.endswith("sulk")


class Children(list[object]):
    """A subclass, which pickle treats as an object."""


@dataclass
class Node:
    to: object = None


def looped_deque() -> object:
    value: deque[object] = deque()
    value.append(value)
    return value


def looped_dict() -> object:
    value: OrderedDict[str, object] = OrderedDict()
    value["a"] = value
    return value


def looped_list() -> object:
    value = Children()
    value.append(value)
    return value


def looped_node() -> object:
    value = Node()
    value.to = [value]
    return value


INNER: dict[Callable[[], object], Callable[..., object]] = {
    looped_deque: lambda value: value[0],
    looped_dict: lambda value: value["a"],
    looped_list: lambda value: value[0],
    looped_node: lambda value: value.to[0],
}


@pytest.mark.parametrize("make", INNER)
def test_an_object_that_contains_itself_travels(make: Callable[[], object]) -> None:
    """Without its memo, the pickler sees cycles of plain lists and dicts only; others recurse."""
    value = make()
    (arrived, other), _ = PICKLE.decode(PICKLE.encode([[value, "a"], [1, 2]]))
    assert type(arrived) is type(value)
    assert INNER[make](arrived) is arrived
    assert other == "a"


def test_a_value_that_is_nested_too_deeply_says_so() -> None:
    """Pickle recurses for each level; `RecursionError` would not tell what to do."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply for pickle; make it flatter"):
        PICKLE.encode([[value]])
    while value:
        value = value.pop()  # type: ignore[assignment]  # Python frees it level by level only if it is taken apart
