"""What a command tells the spouts of a replay, in their configuration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from heron_load_replay.arrival_times import ArrivalTimes

__all__ = ["ORDER_KEY", "ReplayOrder", "order_config"]

ORDER_KEY: Final = "load.replay"


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """What a spout replays: `partitions` of the spout `component` in a file, and where its results go.

    `speed` and `rate` are those of `ArrivalTimes`; `rate` is that of all tasks of this spout together. `seconds` is how
    long the capture lasted.
    """

    file: str
    results: str
    partitions: tuple[int, ...]
    speed: float
    rate: float
    seconds: float

    def arrivals(self, partitions: range) -> ArrivalTimes:
        """Return the arrivals at a task with these partitions, by their part of the tuples."""
        own, every = sum(self.partitions[each] for each in partitions), sum(self.partitions)
        return ArrivalTimes(self.speed, self.rate * own / every if every else 0.0)


def order_config(order: ReplayOrder) -> dict[str, object]:
    """Return the configuration of a component that has this order."""
    return {ORDER_KEY: asdict(order)}
