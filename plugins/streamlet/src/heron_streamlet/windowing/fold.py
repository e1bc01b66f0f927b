"""Folds: how the values of a key or window become one result. The same fold runs on every engine."""

from __future__ import annotations

import copy
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Aggregate", "Aggregated", "Count", "Fold", "Reduce"]

V = TypeVar("V")
A = TypeVar("A")
R = TypeVar("R")


class Aggregate(ABC, Generic[V, A, R]):
    """An aggregate: accumulators that take values, and that can be merged in any grouping of the values.

    ``merge`` must be associative, and ``add(a, v)`` must equal ``merge(a, add(zero(), v))``. The engine may merge
    accumulators that were filled in different tasks, in any order. An accumulator must be picklable, and one of sliding
    windows copyable by `copy.deepcopy`. If a method raises an exception, its window of this key has no result, and is
    counted as failed.
    """

    @abstractmethod
    def zero(self) -> A:
        """Return an accumulator without values."""

    @abstractmethod
    def add(self, accumulator: A, value: V) -> A:
        """Return the accumulator with this value; it may be the same object."""

    @abstractmethod
    def merge(self, left: A, right: A) -> A:
        """Return the accumulator of all values of both; it may be one of the objects."""

    def result(self, accumulator: A) -> R:
        """Return the result; without an override it is the accumulator."""
        return accumulator  # type: ignore[return-value]  # R is A, unless the method is overridden


class Fold(ABC):
    """What an operator needs of a reduction: the accumulator of one value, one more value, two accumulators."""

    in_any_order = True
    """Whether the order of the values makes no difference, and accumulators may be shared out among windows."""

    @abstractmethod
    def first(self, value: object) -> object:
        """The accumulator of one value."""

    @abstractmethod
    def add(self, accumulator: object, value: object) -> object:
        """The accumulator with one more value."""

    @abstractmethod
    def merge(self, left: object, right: object) -> object:
        """The accumulator of the values of both."""

    def result(self, accumulator: object) -> object:
        """What the author receives."""
        return accumulator

    def copied(self, accumulator: object) -> object:
        """An accumulator that later values do not change, for a result before them."""
        return accumulator

    def adder(self) -> Callable[[Any, Any], Any]:
        """The quickest function that does what `add` does."""
        return self.add

    def merger(self) -> Callable[[Any, Any], Any]:
        """The quickest function that does what `merge` does."""
        return self.merge

    def result_of(self) -> Callable[[Any], Any]:
        """The quickest function that does what `result` does."""
        return self.result

    def adding(self, accumulator: str, value: str, add: str) -> str:
        """Source text that does what `add` does; `add` is the name of `adder`."""
        return f"{add}({accumulator}, {value})"


@dataclass(frozen=True, slots=True)
class Reduce(Fold):
    """A function of two values; it must be associative, and is called with older values on the left."""

    in_any_order = False
    function: Callable[[object, object], object]

    def first(self, value: object) -> object:
        """`Fold.first`."""
        return value

    def add(self, accumulator: object, value: object) -> object:
        """`Fold.add`."""
        return self.function(accumulator, value)

    def adder(self) -> Callable[[Any, Any], Any]:
        """`Fold.adder`."""
        return self.function

    def merger(self) -> Callable[[Any, Any], Any]:
        """`Fold.merger`."""
        return self.function

    def merge(self, left: object, right: object) -> object:
        """`Fold.merge`."""
        return self.function(left, right)


@dataclass(frozen=True, slots=True)
class Count(Fold):
    """The number of values."""

    def first(self, value: object) -> object:  # only their number counts
        """`Fold.first`."""
        return 1

    def add(self, accumulator: object, value: object) -> object:  # see above
        """`Fold.add`."""
        return accumulator + 1  # type: ignore[operator]  # made by this class

    def merge(self, left: object, right: object) -> object:
        """`Fold.merge`."""
        return left + right  # type: ignore[operator]  # made by this class

    def merger(self) -> Callable[[Any, Any], Any]:
        """`Fold.merger`."""
        return operator.add

    def adding(self, accumulator: str, value: str, add: str) -> str:
        """`Fold.adding`."""
        del value, add
        return f"{accumulator} + 1"


@dataclass(frozen=True, slots=True)
class Aggregated(Fold):
    """An author's `Aggregate`."""

    aggregate: Aggregate[Any, Any, Any]

    def first(self, value: object) -> object:
        """`Fold.first`."""
        return self.aggregate.add(self.aggregate.zero(), value)

    def add(self, accumulator: object, value: object) -> object:
        """`Fold.add`."""
        return self.aggregate.add(accumulator, value)

    def merge(self, left: object, right: object) -> object:
        """`Fold.merge`."""
        return self.aggregate.merge(left, right)

    def copied(self, accumulator: object) -> object:
        """`Fold.copied`: an author may change accumulators in place, and when the result is made."""
        return copy.deepcopy(accumulator)

    def result(self, accumulator: object) -> object:
        """`Fold.result`."""
        return self.aggregate.result(accumulator)
