"""The events of the Yahoo streaming benchmark: someone has seen an ad, clicked on it, or bought.

An event is a function of its number, except that a block repeats itself: only the times go on. The peer program
``AdEvents.java`` makes the same events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from replay import BLOCK, PER_S, Replay

__all__ = ["CAMPAIGNS", "AdEvent", "ad_batches", "ad_events", "event", "later_block"]

BASE_MS = 1_436_918_400_000  # 2015-07-15T00:00:00Z
USERS = PAGES = 100
ADS, ADS_OF_CAMPAIGN = 1000, 10
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
ROWS = 50_000  # of a batch

_MASK = (1 << 64) - 1


class AdEvent(NamedTuple):
    """The fields of the published benchmark; the time is in milliseconds since 1970."""

    user: str
    page: str
    ad: str
    ad_type: str
    event_type: str
    time: int
    address: str


def _ids(kind: int, count: int) -> list[str]:
    return [f"{kind:08x}-0000-4000-8000-{number:012x}" for number in range(count)]


_USERS, _PAGES, _ADS = _ids(1, USERS), _ids(2, PAGES), _ids(3, ADS)
_CAMPAIGNS = _ids(4, ADS // ADS_OF_CAMPAIGN)
CAMPAIGNS: Mapping[str, str] = {ad: _CAMPAIGNS[number // ADS_OF_CAMPAIGN] for number, ad in enumerate(_ADS)}
"""The campaign of each ad: the static table of the join."""


def event(number: int) -> AdEvent:
    """Return the event with this number."""
    mixed = _mix(number % BLOCK)
    return AdEvent(
        _USERS[(mixed & 0xFFFF) % USERS],
        _PAGES[(mixed >> 16 & 0xFFFF) % PAGES],
        _ADS[(mixed >> 32 & 0xFFFF) % ADS],
        AD_TYPES[(mixed >> 48 & 0xFF) % len(AD_TYPES)],
        EVENT_TYPES[(mixed >> 56) % len(EVENT_TYPES)],
        BASE_MS + number * 1000 // PER_S,
        "1.2.3.4",
    )


def _mix(number: int) -> int:
    """The output function of SplitMix64."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def ad_events(rounds: int, partitions: int, folder: str = "") -> Replay:
    """Return the events as a source of records."""
    return Replay(_events, _later, rounds, partitions, folder=folder)


def ad_batches(rounds: int, partitions: int, folder: str = "") -> Replay:
    """Return the events as a source of record batches."""
    return Replay(_batches, _batches_later, rounds, partitions, most=1, folder=folder)


@lru_cache(maxsize=4)
def _events(partition: int, partitions: int) -> Sequence[AdEvent]:
    return [event(number) for number in range(partition, BLOCK, partitions)]


def _later(events: Sequence[AdEvent], ms: int) -> Sequence[AdEvent]:
    return [
        AdEvent(user, page, ad, ad_type, event_type, time + ms, address)
        for user, page, ad, ad_type, event_type, time, address in events
    ]


def later_block(numbers: Sequence[int]) -> list[AdEvent]:
    """Return the events with these numbers, from a block in memory."""
    block, made = _events(0, 1), []
    for number in numbers:
        user, page, ad, ad_type, event_type, _, address = block[number % BLOCK]
        made.append(AdEvent(user, page, ad, ad_type, event_type, BASE_MS + number * 1000 // PER_S, address))
    return made


def _batches(partition: int, partitions: int) -> Sequence[pa.RecordBatch]:
    columns = dict(zip(AdEvent._fields, zip(*_events(partition, partitions), strict=True), strict=True))
    times = pa.array(columns.pop("time"), pa.timestamp("ms", tz="UTC"))
    whole = pa.RecordBatch.from_pydict({**{name: pa.array(values) for name, values in columns.items()}, "time": times})
    return [whole.slice(begin, ROWS) for begin in range(0, whole.num_rows, ROWS)]


def _batches_later(batches: Sequence[pa.RecordBatch], ms: int) -> Sequence[pa.RecordBatch]:
    at = batches[0].schema.get_field_index("time")
    shift = pa.scalar(ms, pa.duration("ms"))
    return [batch.set_column(at, batch.schema.field(at), pc.add(batch["time"], shift)) for batch in batches]
