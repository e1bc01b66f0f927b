"""Streams whose elements have weights. Each method adds one operator, as those of `heron_streamlet.api.streamlet`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Generic, TypeVar

from heron.api.shedding import SheddingPolicy
from heron.author_text import short_text
from heron.errors import UsageError, known, nearest
from heron_streamlet.api.checked_operators import DAY_S, called
from heron_streamlet.api.streamlet import KeyedStreamlet, Streamlet
from heron_streamlet.sampling.estimate import Estimate
from heron_streamlet.sampling.estimates import CountEstimate, KeptCount
from heron_streamlet.sampling.shedder import Shedder, SheddingRule
from heron_streamlet.views.view import View
from heron_streamlet.windowing.fold import Aggregate
from heron_streamlet.windowing.window import Duration, KeyedWindow, SessionWindow, SlidingWindow, micros

__all__ = ["SampledKeyedStreamlet", "SampledStreamlet", "shed"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
R = TypeVar("R")

Weighted = tuple[float, T]


def shed(
    stream: Streamlet[T],
    policy: str = "uniform",
    *,
    rate: float | None = None,
    latency: Duration | None = None,
    time: Callable[[T], float] | None = None,
    key: Callable[[T], object] | None = None,
    priority: Callable[[T], float] | None = None,
) -> SampledStreamlet[T]:
    """Keep as many elements as the target allows; return a stream that knows what they stand for.

    Shed as near to the source as possible: the work behind it is saved.

    Args:
        stream: what is shed. Each task of the stream decides for its own elements.
        policy: ``uniform``: each element with the same probability; ``by-key``: all elements of some keys;
            ``priority``: those of the lowest priority.
        rate: how many elements per second all tasks keep.
        latency: how old an element may be when it is read; it needs `time`.
        time: when an element happened, in seconds since 1970.
        key: the key of an element, for ``by-key``.
        priority: the priority of an element, a number, for ``priority``.

    Raises:
        UsageError: when an argument is wrong, or does not belong to the policy or target.
    """
    policies = [each.value for each in SheddingPolicy if each is not SheddingPolicy.NONE]
    if policy not in policies:
        msg = f"shed: policy {short_text(policy, 60)}{nearest(str(policy), policies)} is none; known: {known(policies)}"
        raise UsageError(msg)
    chosen = SheddingPolicy(policy)
    wrong = _wrong_rate(rate)
    if (rate is None) == (latency is None):
        wrong = "give one target: rate (elements/s) or latency (s)"
    elif (latency is None) != (time is None):
        wrong = "latency and time belong together"
    elif (chosen is SheddingPolicy.BY_KEY) != (key is not None):
        wrong = "key and the policy by-key belong together"
    elif (chosen is SheddingPolicy.PRIORITY) != (priority is not None):
        wrong = "priority and the policy priority belong together"
    if wrong:
        msg = f"shed: {wrong}"
        raise UsageError(msg)
    latency_s = None if latency is None else micros(latency, "shed: latency") / 1_000_000
    rule = SheddingRule(chosen, rate, latency_s, key, priority, time)
    return SampledStreamlet(stream.transform(Shedder(rule)), whole_keys=key is not None)


def _wrong_rate(rate: object) -> str:
    if rate is None or (isinstance(rate, int | float) and rate > 0):
        return ""
    return f"rate={short_text(rate, 60)} is not a number of elements/s above 0"


class SampledStreamlet(Generic[T]):
    """A stream of which elements were shed.

    Attributes:
        weighted: the pairs of weight and element, for operators that this class lacks.
        whole_keys: whether all elements of a key were kept or none.
    """

    def __init__(self, weighted: Streamlet[Weighted[T]], *, whole_keys: bool = False) -> None:
        self.weighted = weighted
        self.whole_keys = whole_keys

    def map(self, function: Callable[[T], U]) -> SampledStreamlet[U]:
        """`Streamlet.map`."""
        mapped = called(function, "map")
        return self._with(self.weighted.map(lambda each: (each[0], mapped(each[1]))))

    def flat_map(self, function: Callable[[T], Iterable[U]]) -> SampledStreamlet[U]:
        """`Streamlet.flat_map`; each result has the weight of its element."""
        mapped = called(function, "flat_map")
        return self._with(self.weighted.flat_map(lambda each: [(each[0], result) for result in mapped(each[1])]))

    def filter(self, function: Callable[[T], object]) -> SampledStreamlet[T]:
        """`Streamlet.filter`."""
        passes = called(function, "filter")
        return self._with(self.weighted.filter(lambda each: passes(each[1])))

    def event_time(
        self,
        function: Callable[[T], datetime | float],
        *,
        lag: Duration = 0,
        idle_after: Duration | None = None,
        max_ahead: Duration | None = DAY_S,
    ) -> SampledStreamlet[T]:
        """`Streamlet.event_time`."""
        timed = called(function, "event_time")
        return self._with(
            self.weighted.event_time(lambda each: timed(each[1]), lag=lag, idle_after=idle_after, max_ahead=max_ahead)
        )

    def key_by(self, key: Callable[[T], K], value: Callable[[T], V] | None = None) -> SampledKeyedStreamlet[K, Any]:
        """`Streamlet.key_by`."""
        keyed = called(key, "key_by")
        valued = _itself if value is None else called(value, "key_by")
        pairs: KeyedStreamlet[K, Any] = self.weighted.key_by(
            lambda each: keyed(each[1]), lambda each: (each[0], valued(each[1]))
        )
        return SampledKeyedStreamlet(pairs, whole_keys=self.whole_keys)

    def _with(self, weighted: Streamlet[Weighted[U]]) -> SampledStreamlet[U]:
        return SampledStreamlet(weighted, whole_keys=self.whole_keys)


class SampledKeyedStreamlet(Generic[K, V]):
    """Pairs of a key and a value, of which some were shed.

    Attributes:
        weighted: the pairs of key and ``(weight, value)``.
        whole_keys: as in `SampledStreamlet`.
    """

    def __init__(self, weighted: KeyedStreamlet[K, Weighted[V]], *, whole_keys: bool = False) -> None:
        self.weighted = weighted
        self.whole_keys = whole_keys

    def count_by_key_and_window(
        self, window: SlidingWindow | SessionWindow
    ) -> Streamlet[tuple[KeyedWindow[K], Estimate]]:
        """`Streamlet.count_by_key_and_window`: the estimated count of each key.

        Behind ``by-key``, use `count_kept_keys`.

        Raises:
            UsageError: when whole keys were shed.
        """
        if self.whole_keys:
            msg = "count_by_key_and_window: whole keys were shed, so those that are left are exact; use count_kept_keys"
            raise UsageError(msg)
        return self.aggregate_by_key_and_window(window, CountEstimate())

    def count_kept_keys(self, window: SlidingWindow | SessionWindow) -> SampledStreamlet[tuple[KeyedWindow[K], int]]:
        """Count the pairs of each key that was kept, exactly, behind ``by-key`` with the same key.

        The results are a sample of all keys, so they have weights again.

        Raises:
            UsageError: when the elements of a key were shed one by one.
        """
        if not self.whole_keys:
            msg = "count_kept_keys: elements were shed one by one, not by key; use count_by_key_and_window"
            raise UsageError(msg)
        counts = self.weighted.aggregate_by_key_and_window(window, KeptCount())
        results: Streamlet[Any] = counts.map(_weight_first)
        return SampledStreamlet(results, whole_keys=True)

    def aggregate_by_key_and_window(
        self, window: SlidingWindow | SessionWindow, aggregate: Aggregate[Weighted[V], A, R]
    ) -> Streamlet[tuple[KeyedWindow[K], R]]:
        """`Streamlet.aggregate_by_key_and_window` with an aggregate of ``(weight, value)``, such as `SumEstimate`."""
        return self.weighted.aggregate_by_key_and_window(window, aggregate)

    def to_view(self, view: View[Weighted[V], Any]) -> None:
        """`Streamlet.to_view`; the monoid of the view is one of ``(weight, value)``, such as `CountEstimate`."""
        self.weighted.to_view(view)


def _itself(element: Any) -> Any:  # noqa: ANN401  # any element
    return element


def _weight_first(result: tuple[Any, Any]) -> tuple[float, tuple[Any, int]]:
    place, (weight, count) = result
    return weight, (place, count)
