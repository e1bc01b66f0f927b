"""The engine's metrics of tasks that the history keeps by their names, beside those that pages show as figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

__all__ = ["ENGINE_JOINS", "ENGINE_METRICS", "ENGINE_SERIES", "OF_ENGINE", "place_of"]

OF_ENGINE = "engine/"
"""Begins their names in the history. ``engine/task-time-s/input`` has the label `use` of its metric, too."""

Join = Callable[[Sequence[float]], float]

ENGINE_METRICS: Mapping[str, Join] = {
    "backlog": sum,
    "consumed-bytes": sum,
    "cpu-seconds": sum,
    "cpu-wait-s": fmean,
    "dead-letter-count": sum,
    "dead-letters-dropped": sum,
    "emit-batch-bytes": sum,
    "emit-batch-count": sum,
    "execute-batch-count": sum,
    "failed-by": sum,
    "gc-pause-s": fmean,
    "held-back-s": fmean,
    "in-queue-bytes": sum,
    "out-queue-bytes": sum,
    "output-held-s": fmean,
    "replay-bytes": sum,
    "replay-count": sum,
    "selectivity": fmean,
    "task-time-s": fmean,
    "true-rate-in": sum,
    "true-rate-out": sum,
    "user-error-count": sum,
}
"""What a component has of the values of its tasks. A counter is kept as its rate, which is a share for one of seconds.

Values of one metric with several labels are added, but for the uses of time. Left out are `hot-key-share` and
`hot-group-share`, whose labels are data of the topology; histograms, whose quantiles are figures; capacities, which do
not change; and `watermark`, which is a time.
"""


_USES = ("user-cpu", "user-blocked", "engine", "input", "room", "throttled", "acks", "paused")

ENGINE_SERIES = tuple(
    f"{OF_ENGINE}{name}{use}"
    for name in ENGINE_METRICS
    for use in ([f"/{each}" for each in _USES] if name == "task-time-s" else [""])
)
"""The names of the series: 29 of a task at most."""

ENGINE_JOINS = tuple(ENGINE_METRICS[name.split("/")[1]] for name in ENGINE_SERIES)
"""What a component has of each, in their order."""

_PLACES = {name: place for place, name in enumerate(ENGINE_SERIES)}


def place_of(metric: str, use: str) -> int | None:
    """Return the place of the series of a metric with this label `use` ("" for none); None if it is not kept."""
    return _PLACES.get(f"{OF_ENGINE}{metric}/{use}" if use else OF_ENGINE + metric)
