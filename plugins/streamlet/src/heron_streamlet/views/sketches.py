"""Monoids that approximate in little memory: Apache DataSketches and Bloom filters (``heron-streamlet[sketches]``).

Values are hashed by their canonical bytes (`heron.planner.key_encoding`), so equal values are one on every machine and
in every language; they must be of types that can be keys.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from heron.author_text import short_text
from heron.errors import UsageError
from heron.planner.key_encoding import encode_key
from heron_streamlet.views.monoids import Monoid

__all__ = ["BloomFilter", "CountMin", "Counts", "Frequent", "HyperLogLog", "Members"]

_HLL_LG_K = range(7, 22)
_FREQUENT_LG = range(3, 22)
_INT64_BITS, _INT128_BITS = 64, 128


class Members(Protocol):
    """A set that may contain values that were never added, and never misses one that was."""

    def __contains__(self, value: object) -> bool:
        """Whether the value may have been added."""
        ...


class Counts(Protocol):
    """Counts that may be too high, and are never too low."""

    def of(self, value: object) -> int:
        """How often the value was added, at least."""
        ...


class HyperLogLog(Monoid[Any, Any, int]):
    """The number of distinct values, about.

    Args:
        lg_k: the accuracy: the standard error is 1.04 / sqrt(2 ** lg_k), 1.6 % for 12. An accumulator has at most
            about 2 ** lg_k bytes.

    Raises:
        UsageError: when `lg_k` is not an integer from 7 to 21, or datasketches is not installed.
    """

    word = "hyperloglog"

    def __init__(self, lg_k: int = 12) -> None:
        _check("HyperLogLog", "lg_k", lg_k, _HLL_LG_K)
        _datasketches()
        self.lg_k = lg_k

    def zero(self) -> Any:  # noqa: ANN401  # belongs to this class
        """`Aggregate.zero`."""
        return _Hll(_datasketches().hll_union(self.lg_k))

    def add(self, accumulator: Any, value: object) -> Any:  # noqa: ANN401
        """`Aggregate.add`."""
        accumulator.union.update(_int64(value))
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """`Aggregate.merge`."""
        left.union.update(right.union.get_result())
        return left

    def result(self, accumulator: Any) -> int:  # noqa: ANN401
        """`Aggregate.result`."""
        estimate: float = accumulator.union.get_estimate()
        return round(estimate)

    def encode(self, accumulator: Any) -> bytes:  # noqa: ANN401
        """`Monoid.encode`: the compact form of DataSketches."""
        return _hll_bytes(accumulator)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401
        """`Monoid.decode`."""
        return _hll(self.lg_k, data)


class CountMin(Monoid[Any, Any, Counts]):
    """How often each value occurs, about, for more values than memory could list.

    Args:
        error: by how much a count may be too high, as a part of the number of all values; more than 0, at most 0.5.
        confidence: how probable this is, more than 0 and less than 1.

    Raises:
        UsageError: when a number is out of its range, or datasketches is not installed.
    """

    word = "count-min"

    def __init__(self, error: float = 0.001, confidence: float = 0.99) -> None:
        if not 0 < error <= 0.5 or not 0 < confidence < 1:  # see the docstring
            msg = (
                f"CountMin(error={short_text(error, 60)}, confidence={short_text(confidence, 60)}): error from 0 "
                "to 0.5, confidence from 0 to 1"
            )
            raise UsageError(msg)
        sketch = _datasketches().count_min_sketch
        self.hashes: int = sketch.suggest_num_hashes(confidence)
        self.buckets: int = sketch.suggest_num_buckets(error)

    def zero(self) -> Any:  # noqa: ANN401
        """`Aggregate.zero`."""
        return _CountMin(_datasketches().count_min_sketch(self.hashes, self.buckets))

    def add(self, accumulator: Any, value: object) -> Any:  # noqa: ANN401
        """`Aggregate.add`."""
        accumulator.sketch.update(_int64(value))
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """`Aggregate.merge`."""
        left.sketch.merge(right.sketch)
        return left

    def encode(self, accumulator: Any) -> bytes:  # noqa: ANN401
        """`Monoid.encode`."""
        return bytes(accumulator.sketch.serialize())

    def decode(self, data: bytes) -> Any:  # noqa: ANN401
        """`Monoid.decode`."""
        return _count_min(data)


class Frequent(Monoid[str, Any, list[tuple[str, int]]]):
    """The `k` most frequent texts with their counts, the most frequent first.

    Exact for keys with at most ``0.75 * 2 ** lg_size`` different texts; beyond this, counts are too high by at most
    ``3.5 / 2 ** lg_size`` of the number of all texts.

    Raises:
        UsageError: when `k` is not from 1 to 100,000, `lg_size` not from 3 to 21, or datasketches is not installed.
    """

    word = "frequent"

    def __init__(self, k: int = 10, lg_size: int = 10) -> None:
        _check("Frequent", "k", k, range(1, 100_001))
        _check("Frequent", "lg_size", lg_size, _FREQUENT_LG)
        _datasketches()
        self.k, self.lg_size = k, lg_size

    def zero(self) -> Any:  # noqa: ANN401
        """`Aggregate.zero`."""
        return _Frequent(_datasketches().frequent_strings_sketch(self.lg_size))

    def add(self, accumulator: Any, value: str) -> Any:  # noqa: ANN401
        """`Aggregate.add`."""
        accumulator.sketch.update(value)
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """`Aggregate.merge`."""
        left.sketch.merge(right.sketch)
        return left

    def result(self, accumulator: Any) -> list[tuple[str, int]]:  # noqa: ANN401
        """`Aggregate.result`."""
        kind = _datasketches().frequent_items_error_type.NO_FALSE_NEGATIVES
        found = [(text, count) for text, count, *_ in accumulator.sketch.get_frequent_items(kind)]
        return sorted(found, key=lambda each: (-each[1], each[0]))[: self.k]

    def encode(self, accumulator: Any) -> bytes:  # noqa: ANN401
        """`Monoid.encode`."""
        return bytes(accumulator.sketch.serialize())

    def decode(self, data: bytes) -> Any:  # noqa: ANN401
        """`Monoid.decode`."""
        return _frequent(data)


class BloomFilter(Monoid[Any, Any, Members]):
    """Which values have occurred, about.

    Args:
        expected: how many different values a key has; more of them make `false_positives` greater. An accumulator has
            about ``1.44 * log2(1 / false_positives) / 8`` bytes for each.
        false_positives: how often a value that never occurred is found, more than 0 and less than 1.

    Raises:
        UsageError: when a number is out of its range, or rbloom is not installed.
    """

    word = "bloom"
    _MOST = 10_000_000

    def __init__(self, expected: int, false_positives: float = 0.01) -> None:
        _check("BloomFilter", "expected", expected, range(1, self._MOST + 1))
        if not 0 < false_positives < 1:
            msg = f"BloomFilter(false_positives={short_text(false_positives, 60)}): not more than 0 and less than 1"
            raise UsageError(msg)
        _rbloom()
        self.expected, self.false_positives = expected, false_positives

    def zero(self) -> Any:  # noqa: ANN401
        """`Aggregate.zero`."""
        return _Bloom(_rbloom().Bloom(self.expected, self.false_positives, _int128))

    def add(self, accumulator: Any, value: object) -> Any:  # noqa: ANN401
        """`Aggregate.add`."""
        accumulator.bloom.add(value)
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """`Aggregate.merge`."""
        left.bloom.update(right.bloom)
        return left

    def encode(self, accumulator: Any) -> bytes:  # noqa: ANN401
        """`Monoid.encode`."""
        return bytes(accumulator.bloom.save_bytes())

    def decode(self, data: bytes) -> Any:  # noqa: ANN401
        """`Monoid.decode`."""
        return _bloom(data)


class _Hll:
    __slots__ = ("union",)

    def __init__(self, union: Any) -> None:  # noqa: ANN401  # the library has no types
        self.union = union

    def __reduce__(self) -> tuple[object, ...]:
        return _hll, (self.union.lg_config_k, _hll_bytes(self))


class _CountMin:
    __slots__ = ("sketch",)

    def __init__(self, sketch: Any) -> None:  # noqa: ANN401
        self.sketch = sketch

    def of(self, value: object) -> int:
        """`Counts.of`."""
        estimate: float = self.sketch.get_estimate(_int64(value))
        return round(estimate)

    def __reduce__(self) -> tuple[object, ...]:
        return _count_min, (bytes(self.sketch.serialize()),)


class _Frequent:
    __slots__ = ("sketch",)

    def __init__(self, sketch: Any) -> None:  # noqa: ANN401
        self.sketch = sketch

    def __reduce__(self) -> tuple[object, ...]:
        return _frequent, (bytes(self.sketch.serialize()),)


class _Bloom:
    __slots__ = ("bloom",)

    def __init__(self, bloom: Any) -> None:  # noqa: ANN401
        self.bloom = bloom

    def __contains__(self, value: object) -> bool:
        return value in self.bloom

    def __reduce__(self) -> tuple[object, ...]:
        return _bloom, (bytes(self.bloom.save_bytes()),)


def _hll_bytes(held: _Hll) -> bytes:
    return bytes(held.union.get_result().serialize_compact())


def _hll(lg_k: int, data: bytes) -> _Hll:
    union = _datasketches().hll_union(lg_k)
    union.update(_datasketches().hll_sketch.deserialize(data))
    return _Hll(union)


def _count_min(data: bytes) -> _CountMin:
    return _CountMin(_datasketches().count_min_sketch.deserialize(data))


def _frequent(data: bytes) -> _Frequent:
    return _Frequent(_datasketches().frequent_strings_sketch.deserialize(data))


def _bloom(data: bytes) -> _Bloom:
    return _Bloom(_rbloom().Bloom.load_bytes(data, _int128))


def _int64(value: object) -> int:
    return _signed(xxh3_64_intdigest(encode_key((value,))), _INT64_BITS)


def _int128(value: object) -> int:
    return _signed(xxh3_128_intdigest(encode_key((value,))), _INT128_BITS)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


def _check(what: str, name: str, value: object, valid: range) -> None:
    if type(value) is not int or value not in valid:
        msg = f"{what}({name}={short_text(value, 60)}): not an integer from {valid[0]} to {valid[-1]}"
        raise UsageError(msg)


def _datasketches() -> ModuleType:
    return _library("datasketches")


def _rbloom() -> ModuleType:
    return _library("rbloom")


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        msg = f"{name} is not installed; `pip install 'heron-streamlet[sketches]'`, here and where the pipeline runs"
        raise UsageError(msg) from error
