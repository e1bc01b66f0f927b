"""What a task of a pipeline keeps: each kept element gets its weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from heron.api import global_metrics
from heron.api.shedding import SheddingPolicy
from heron.clock import Clock, SystemClock
from heron.driver_kit.keep_controller import (
    PERIOD_S,
    KeepController,
    LatencyController,
    Offer,
    RateController,
    SmoothedRate,
)
from heron.driver_kit.shedding_chances import KeyChances, PriorityChances, uniform_chances
from heron_streamlet.connectors.transformer import StageContext, Transformer

__all__ = ["Shedder", "SheddingRule"]

_LEAST_PACE, _MOST_PACE = 0.1, 10.0  # of event time: more would only say that elements are not in order


@dataclass(frozen=True, slots=True)
class SheddingRule:
    """The arguments of `heron_streamlet.sampling.shed`, which has checked them."""

    policy: SheddingPolicy
    rate_per_s: float | None = None
    latency_s: float | None = None
    key: Callable[[Any], object] | None = None
    priority: Callable[[Any], float] | None = None
    time: Callable[[Any], float] | None = None


class Shedder(Transformer[Any, tuple[float, Any]]):
    """Keeps a share of the elements of a task. What it sheds is counted in the metric ``shed/NAME`` of its process."""

    clock: Clock = SystemClock()

    def __init__(self, rule: SheddingRule) -> None:
        self.rule = rule

    def setup(self, context: StageContext) -> None:
        """`Transformer.setup`."""
        self._metric = f"shed/{context.name}"
        self._controller = _controller(self.rule, max(1, context.partitions))
        self._chance, self._ranks = _chances(self.rule, context.partition)
        self._offered = self._shed = 0
        self._delay_s = 0.0
        self._delay_before_s: float | None = None
        self._pace = SmoothedRate()
        self._since_s = self.clock.monotonic_s()

    def transform(self, element: Any) -> Iterable[tuple[float, Any]]:  # noqa: ANN401  # as in the base class
        """`Transformer.transform`."""
        elapsed_s = self.clock.monotonic_s() - self._since_s
        if elapsed_s >= PERIOD_S:
            self._follow(elapsed_s)
        self._offered += 1
        if self.rule.time is not None:
            self._delay_s = self.clock.wall_s() - self.rule.time(element)
        share = self._controller.share
        if self._chance(element) >= share:
            self._shed += 1
            return ()
        return ((1.0 / (share if self._ranks is None else self._ranks.of_last), element),)

    def close(self) -> None:
        """`Transformer.close`."""
        self._count()

    def _follow(self, elapsed_s: float) -> None:
        self._since_s += elapsed_s
        offer = Offer(self._arrived(elapsed_s), elapsed_s, max(0.0, self._delay_s), self._offered - self._shed)
        self._controller.follow(offer)
        if self._ranks is not None:
            self._ranks.follow(self._controller.share)
        self._offered = 0
        self._count()

    def _arrived(self, elapsed_s: float) -> float:
        """How many elements have come to the source: those of this period, at the pace of their event time."""
        if self.rule.time is None:
            return self._offered
        before_s, self._delay_before_s = self._delay_before_s, self._delay_s
        passed_s = elapsed_s if before_s is None else elapsed_s - (self._delay_s - before_s)
        pace = self._pace.add(min(max(passed_s, 0.0), _MOST_PACE * elapsed_s), elapsed_s)
        return self._offered / max(_LEAST_PACE, pace)

    def _count(self) -> None:
        if self._shed:
            global_metrics.incr(self._metric, self._shed)
            self._shed = 0


def _controller(rule: SheddingRule, tasks: int) -> KeepController:
    if rule.rate_per_s is not None:
        return RateController(rule.rate_per_s / tasks)
    return LatencyController(cast("float", rule.latency_s))


def _chances(rule: SheddingRule, seed: int) -> tuple[Callable[[Any], float], PriorityChances | None]:
    uniform = uniform_chances(seed)
    if rule.key is not None:
        key, of_key = rule.key, KeyChances(single=True)
        return lambda element: of_key(key(element)), None
    if rule.priority is not None:
        ranks = PriorityChances(rule.priority, uniform)
        return ranks, ranks
    return lambda _: uniform(), None
