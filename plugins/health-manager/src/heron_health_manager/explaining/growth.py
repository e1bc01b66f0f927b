"""What had grown in a process before it died: its memory, and the gauges of its own code. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron.ipc.documents.metric_names import IN_QUEUE_BYTES, OUT_QUEUE_BYTES, RESIDENT_BYTES
from heron.spi.metricsink import OF_AUTHORS
from heron_cli.view.text import format_bytes
from heron_health_manager.explaining.facts import PastGauges
from heron_health_manager.explaining.words import duration, large

__all__ = ["LOOK_BACK_S", "Growth", "grown_before"]

LOOK_BACK_S = 120.0
"""How long before a death its gauges are looked at."""

_FACTOR = 1.5  # less is no growth
_QUEUES = (IN_QUEUE_BYTES, OUT_QUEUE_BYTES)
_LATE_S = 0.5  # a record may carry a time slightly after the death, when hosts differ


@dataclass(frozen=True, slots=True)
class Growth:
    """The gauge that grew by the largest factor, as ``its window grew to 3.1 M``, `before_s` seconds before the end.

    It is the memory itself where no other gauge has grown. `memory` is the growth of the memory from the first record
    to the last one; "" if it did not grow.
    """

    before_s: float
    largest: str
    memory: str = ""


def grown_before(gauges: Sequence[PastGauges], container_id: int, process: str, died_s: float) -> Growth | None:
    """What had grown in the life that ended at `died_s`; None if no record is left, or nothing had grown."""
    life = [
        each
        for each in gauges
        if (each.container_id, each.process) == (container_id, process)
        and died_s - LOOK_BACK_S <= each.at_s <= died_s + _LATE_S
    ]
    if not life:
        return None
    last = life[-1]
    lived = [each for each in life if each.incarnation == last.incarnation]
    first = {name: next(each for each in lived if name in each.values) for name in last.values}
    factors = {
        name: value / max(first[name].values[name], 1.0)
        for name, value in last.values.items()
        if name == RESIDENT_BYTES or name in _QUEUES or name.startswith(OF_AUTHORS)
    }
    grown = {name: factor for name, factor in factors.items() if factor >= _FACTOR}
    if not grown:
        return None
    name = max(grown, key=lambda each: (each != RESIDENT_BYTES, grown[each], each))  # what takes the memory, if known
    memory = ""
    if RESIDENT_BYTES in grown:
        earlier = first[RESIDENT_BYTES]
        span = duration(last.at_s - earlier.at_s)
        memory = f"its memory grew from {_shown(earlier, RESIDENT_BYTES)} to {_shown(last, RESIDENT_BYTES)} in {span}"
    return Growth(max(0.0, died_s - last.at_s), f"its {_spoken(name)} grew to {_shown(last, name)}", memory)


def _spoken(name: str) -> str:
    return "memory" if name == RESIDENT_BYTES else name.removeprefix(OF_AUTHORS)


def _shown(record: PastGauges, name: str) -> str:
    value = record.values.get(name, 0.0)
    return format_bytes(int(value)) if name.endswith("-bytes") and not name.startswith(OF_AUTHORS) else large(value)
