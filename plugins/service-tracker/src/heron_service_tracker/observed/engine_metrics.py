"""The engine's metrics that the history keeps by their names, beside those of tasks that pages show as figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

__all__ = [
    "ENGINE_JOINS",
    "ENGINE_METRICS",
    "ENGINE_SERIES",
    "MANAGER",
    "MANAGER_METRICS",
    "MANAGER_SERIES",
    "OF_ENGINE",
    "is_manager",
    "place_of",
]

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

MANAGER = "stmgr-"
"""Begins the names of stream managers, with their container. In the history they stand in the place of a component."""

MANAGER_METRICS = frozenset(
    {
        "backpressure-s",
        "connections-refused",
        "cpu-seconds",
        "cpu-wait-s",
        "deposed-messages",
        "dropped-tuples",
        "late-acks",
        "late-s",
        "outlet-bytes",
        "peer-silent-s",
        "protocol-violations",
        "resident-bytes",
        "roots-in-flight",
        "settled-roots",
        "unconfirmed-bytes",
        "unroutable-segments",
    }
)
"""What the history keeps of each stream manager: values of one metric are added, but for the outcomes of roots.

Left out are its counts of frames and bytes, which say the same as those of tasks.
"""

_OUTCOMES = ("complete", "failed", "expired", "lost")

MANAGER_SERIES = ENGINE_SERIES + tuple(
    f"{OF_ENGINE}{name}{outcome}"
    for name in sorted(MANAGER_METRICS - ENGINE_METRICS.keys())
    for outcome in ([f"/{each}" for each in _OUTCOMES] if name == "settled-roots" else [""])
)
"""The names of its series, 19 at most. Those of tasks come first, so that a metric has one place in both."""

_PLACES = {name: place for place, name in enumerate(MANAGER_SERIES)}


def place_of(metric: str, labels: Mapping[str, str]) -> int | None:
    """Return the place of the series of a metric with these labels; None if it is not kept."""
    part = labels.get("use") or labels.get("outcome")
    return _PLACES.get(f"{OF_ENGINE}{metric}/{part}" if part else OF_ENGINE + metric)


def is_manager(process: str) -> bool:
    """Whether a process of the engine is a stream manager."""
    return process.startswith(MANAGER)
