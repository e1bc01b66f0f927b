"""Monoids: aggregates whose accumulators are kept in a store, and merged there by readers. Those of plain values.

An encoding is part of what a store holds, so it never changes; a new meaning gets a new `word`.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar, Protocol, TypeVar, cast

import msgspec

from heron.author_text import short_text
from heron.errors import UsageError
from heron_streamlet.windowing.fold import Aggregate

__all__ = ["Count", "Max", "Min", "Monoid", "Ordered", "PlainMonoid", "Sum", "TopK"]

V = TypeVar("V")
A = TypeVar("A")
R = TypeVar("R")
N = TypeVar("N", int, float, Decimal)


class Ordered(Protocol):
    """A value that can be compared with others of its kind."""

    def __lt__(self, other: Any, /) -> bool:  # noqa: ANN401  # as in typeshed
        """Whether this value is less."""
        ...


C = TypeVar("C", bound=Ordered)


class Monoid(Aggregate[V, A, R]):
    """An aggregate whose accumulators are also bytes.

    `merge` must be associative and commutative, and ``merge(zero(), a)`` must equal `a`. Then it does not matter which
    values a batch merged, which ones the live side, and which ones the reader.
    """

    word: ClassVar[str]
    """Names the encoding in stored values: 1 to 30 letters, digits and ``-``."""

    @abstractmethod
    def encode(self, accumulator: A) -> bytes:
        """Return the accumulator as bytes, at most 16 MiB. Readers of other versions of Python decode them."""

    @abstractmethod
    def decode(self, data: bytes) -> A:
        """Return the accumulator of `encode`; any exception means that the bytes are of another monoid."""


class PlainMonoid(Monoid[V, A, R]):
    """A monoid whose accumulators are plain values."""

    def encode(self, accumulator: A) -> bytes:
        """`Monoid.encode`."""
        return _packed(accumulator)

    def decode(self, data: bytes) -> A:
        """`Monoid.decode`."""
        return cast("A", _unpacked(data))


class Count(PlainMonoid[Any, int, int]):
    """The number of values."""

    word = "count"

    def zero(self) -> int:
        """`Aggregate.zero`."""
        return 0

    def add(self, accumulator: int, value: object) -> int:  # only their number counts
        """`Aggregate.add`."""
        return accumulator + 1

    def merge(self, left: int, right: int) -> int:
        """`Aggregate.merge`."""
        return left + right


class Sum(PlainMonoid[N, N, N]):
    """The sum of numbers: int, float or Decimal.

    Sums of floats depend on the order of the values in their last digits. Amounts of money are exact as int or Decimal.
    """

    word = "sum"

    def zero(self) -> N:
        """`Aggregate.zero`."""
        return 0  # type: ignore[return-value]  # the zero of all three

    def add(self, accumulator: N, value: N) -> N:
        """`Aggregate.add`."""
        return accumulator + value

    def merge(self, left: N, right: N) -> N:
        """`Aggregate.merge`."""
        return left + right


class Min(PlainMonoid[C, C | None, C | None]):
    """The least value; None without values. Values are int, float, Decimal, str, bytes, or tuples of these."""

    word = "min"

    def zero(self) -> C | None:
        """`Aggregate.zero`."""
        return None

    def add(self, accumulator: C | None, value: C | None) -> C | None:
        """`Aggregate.add`."""
        if accumulator is None or value is None:
            return value if accumulator is None else accumulator
        return min(accumulator, value)

    def merge(self, left: C | None, right: C | None) -> C | None:
        """`Aggregate.merge`."""
        return self.add(left, right)


class Max(PlainMonoid[C, C | None, C | None]):
    """The greatest value; None without values. Values as for `Min`."""

    word = "max"

    def zero(self) -> C | None:
        """`Aggregate.zero`."""
        return None

    def add(self, accumulator: C | None, value: C | None) -> C | None:
        """`Aggregate.add`."""
        if accumulator is None or value is None:
            return value if accumulator is None else accumulator
        return max(accumulator, value)

    def merge(self, left: C | None, right: C | None) -> C | None:
        """`Aggregate.merge`."""
        return self.add(left, right)


class TopK(PlainMonoid[C, list[C], list[C]]):
    """The `k` greatest values, the greatest first; equal values all count. Values as for `Min`.

    The most frequent values are `Frequent`.

    Raises:
        UsageError: when `k` is not an integer from 1 to 100,000.
    """

    word = "top-k"
    _MOST = 100_000

    def __init__(self, k: int) -> None:
        if type(k) is not int or not 1 <= k <= self._MOST:
            msg = f"TopK({short_text(k, 60)}): not an integer from 1 to {self._MOST}"
            raise UsageError(msg)
        self.k = k

    def zero(self) -> list[C]:
        """`Aggregate.zero`."""
        return []

    def add(self, accumulator: list[C], value: C) -> list[C]:
        """`Aggregate.add`: keeps a heap, whose first value is the least."""
        if len(accumulator) < self.k:
            heapq.heappush(accumulator, value)
        else:
            heapq.heappushpop(accumulator, value)
        return accumulator

    def merge(self, left: list[C], right: Sequence[C]) -> list[C]:
        """`Aggregate.merge`."""
        for value in right:
            self.add(left, value)
        return left

    def result(self, accumulator: list[C]) -> list[C]:
        """`Aggregate.result`."""
        return sorted(accumulator, reverse=True)


_TUPLE, _DECIMAL, _INT = 1, 2, 3  # types of extensions: what msgpack lacks
_INT64 = range(-(2**63), 2**64)


def _packed(value: object) -> bytes:
    return msgspec.msgpack.encode(_plain(value))


def _plain(value: object) -> object:
    """The value with extensions in place of what msgpack would turn into something else, or refuse."""
    if type(value) is list:
        return [_plain(each) for each in value]
    if type(value) is tuple:
        return msgspec.msgpack.Ext(_TUPLE, _packed(list(value)))
    if isinstance(value, Decimal):
        return msgspec.msgpack.Ext(_DECIMAL, str(value).encode())
    if type(value) is int and value not in _INT64:
        return msgspec.msgpack.Ext(_INT, str(value).encode())
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    msg = (
        f"a {type(value).__name__} cannot be kept in a store: it is not int, float, "
        "Decimal, str, bytes or a tuple of these; map values before they are aggregated, or write a Monoid"
    )
    raise UsageError(msg)


def _unpacked(data: bytes) -> object:
    return msgspec.msgpack.decode(data, ext_hook=_extension)


def _extension(code: int, data: memoryview) -> object:
    if code == _TUPLE:
        return tuple(cast("list[object]", _unpacked(bytes(data))))
    text = bytes(data).decode("ascii")
    return Decimal(text) if code == _DECIMAL else int(text)
