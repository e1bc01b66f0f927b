"""The events of `nexmark_events` as Arrow record batches, and the queries of Nexmark that have a form in columns.

A batch has the kind of each event, its time, and a column of structs for each kind, null in the rows of other kinds.
Bids, 46 of 50 events, are made by NumPy, all of a batch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from nexmark_events import (
    ACTIVE_PERSONS,
    AUCTIONS,
    BASE_MS,
    BID_BYTES,
    DELAY_US,
    FIRST_ID,
    HOT_AUCTION,
    HOT_BIDDER,
    HOT_EVERY,
    INCREMENT,
    LEAD,
    MULTIPLIER,
    OPEN_AUCTIONS,
    PER_GROUP,
    PERSONS,
    SEED_MASK,
    Auction,
    Bid,
    Event,
    NexmarkEvents,
    Person,
    event,
)
from nexmark_rows import AUCTION_SKIP, PERIOD_S, SIZE_S, highest_bid, hottest_auctions

from heron_streamlet import Reader, Source, StageContext, Streamlet, sliding_window
from heron_streamlet.columns import ColumnStreamlet

__all__ = ["COLUMN_QUERIES", "NexmarkColumns", "events_between"]

PERSON, AUCTION, BID = range(3)
TIME = pa.timestamp("ms", tz="UTC")
INTEGERS = ("id", "initial_bid", "reserve", "seller", "category", "auction", "bidder", "price")


def _struct(kind: type[Event]) -> pa.StructType:
    types = dict.fromkeys(INTEGERS, pa.int64()) | dict.fromkeys(("time", "expires"), TIME)
    return pa.struct([(name, types.get(name, pa.string())) for name in kind._fields])


PERSON_TYPE, AUCTION_TYPE, BID_TYPE = _struct(Person), _struct(Auction), _struct(Bid)
SCHEMA = pa.schema(
    [("kind", pa.int8()), ("time", TIME), ("person", PERSON_TYPE), ("auction", AUCTION_TYPE), ("bid", BID_TYPE)]
)

Integers = npt.NDArray[np.int64]


class JavaRandoms:
    """Many `nexmark_events.JavaRandom` at once, one for each seed."""

    def __init__(self, seeds: Integers) -> None:
        self._seeds = (seeds.astype(np.uint64) ^ np.uint64(MULTIPLIER)) & np.uint64(SEED_MASK)

    def bits(self, count: int, where: npt.NDArray[np.bool_] | None = None) -> Integers:
        """The next numbers of `count` bits; where `where` is false, 0, and the random stays as it is."""
        seeds = (self._seeds * np.uint64(MULTIPLIER) + np.uint64(INCREMENT)) & np.uint64(SEED_MASK)
        self._seeds = seeds if where is None else np.where(where, seeds, self._seeds)
        found = (seeds >> np.uint64(48 - count)).astype(np.int64)
        return found if where is None else np.where(where, found, 0)

    def below(self, bound: Integers | int, where: npt.NDArray[np.bool_] | None = None) -> Integers:
        """Numbers from 0, less than their bounds."""
        bounds = np.broadcast_to(np.asarray(bound, dtype=np.int64), self._seeds.shape)
        numbers = self.bits(31, where)
        rests = np.where(bounds & (bounds - 1) == 0, (bounds * numbers) >> 31, numbers % bounds)
        again = (bounds & (bounds - 1) != 0) & (numbers - rests + bounds > 1 << 31)
        while again.any():
            numbers = self.bits(31, again)
            rests = np.where(again, numbers % bounds, rests)
            again &= numbers - rests + bounds > 1 << 31
        return rests

    def fraction(self) -> npt.NDArray[np.floating[Any]]:
        """Numbers from 0, less than 1."""
        high = self.bits(26)
        return ((high << 27) + self.bits(27)) * 2.0**-53


def events_between(begin: int, end: int, step: int = 1, delay_us: int = DELAY_US) -> pa.RecordBatch:
    """Return every `step`-th event from the number `begin`, before the number `end`."""
    numbers = np.arange(begin, end, step, dtype=np.int64)
    places = numbers % PER_GROUP
    kinds = np.digitize(places, [PERSONS, PERSONS + AUCTIONS]).astype(np.int8)
    times = BASE_MS + numbers * delay_us // 1000
    columns = [pa.array(kinds), pa.array(times, TIME)]
    for kind, form in ((PERSON, PERSON_TYPE), (AUCTION, AUCTION_TYPE)):
        found = [event(number, delay_us)._asdict() for number in numbers[kinds == kind].tolist()]
        columns.append(_placed(pa.array(found, form), kinds == kind))
    columns.append(_placed(_bids(numbers[kinds == BID], times[kinds == BID]), kinds == BID))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _placed(found: pa.StructArray, there: npt.NDArray[np.bool_]) -> pa.StructArray:
    """The structs in the rows of their kind; null in the others."""
    return found.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _bids(numbers: Integers, times: Integers) -> pa.StructArray:
    chance, groups = JavaRandoms(numbers), numbers // PER_GROUP
    newest = groups * AUCTIONS + AUCTIONS - 1
    hot = chance.below(HOT_AUCTION) > 0
    oldest = np.maximum(newest - OPEN_AUCTIONS, 0)
    some = oldest + chance.below(newest - oldest + 1 + LEAD, ~hot)
    auction = np.where(hot, newest // HOT_EVERY * HOT_EVERY, some)
    hot = chance.below(HOT_BIDDER) > 0
    active = np.minimum(groups + 1, ACTIVE_PERSONS)
    some = groups + 1 - active + chance.below(active + LEAD, ~hot)
    bidder = np.where(hot, groups // HOT_EVERY * HOT_EVERY + 1, some)
    price = np.floor(np.power(10.0, chance.fraction() * 6.0) * 100.0 + 0.5).astype(np.int64)
    columns = [auction + FIRST_ID, bidder + FIRST_ID, price, times]
    arrays = [pa.array(column, BID_TYPE[index].type) for index, column in enumerate(columns)]
    return pa.StructArray.from_arrays([*arrays, _extras(chance, len(numbers))], fields=list(BID_TYPE))


def _extras(chance: JavaRandoms, count: int) -> pa.Array:
    average = BID_BYTES - 32
    delta = int(average * 0.2 + 0.5)
    lengths = average - delta + chance.below(2 * delta)
    letters = np.empty((count, -(-(average + delta) // 6) * 6), dtype=np.uint8)
    for at in range(0, letters.shape[1], 6):  # numbers that a shorter string does not need are not used by anything
        values = chance.bits(32)
        values = np.where(values >> 31, values - (1 << 32), values)
        signs, values = np.where(values < 0, -1, 1), np.abs(values)
        for place in range(6):
            letters[:, at + place] = 97 + signs * (values % 26)
            values //= 26
    text = letters[np.arange(letters.shape[1]) < lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


class NexmarkColumns(Source[pa.RecordBatch]):
    """The events of a `NexmarkEvents`, in batches of `rows` at most."""

    def __init__(self, events: NexmarkEvents, rows: int = 10_000) -> None:
        self.events, self.rows = events, rows

    def partitions(self, tasks: int) -> Sequence[str]:
        """`Source.partitions`."""
        return self.events.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[pa.RecordBatch]:
        """`Source.open`. The position is the number of the next event."""
        return _BatchReader(position if isinstance(position, int) else int(partition), self)


class _BatchReader:
    def __init__(self, position: int, source: NexmarkColumns) -> None:
        self.position = position
        self._source = source

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:  # one batch has more rows than a limit
        """`Reader.read`."""
        begin, events = self.position, self._source.events
        if begin >= events.count:
            return None
        self.position = begin + self._source.rows * events.step
        return [events_between(begin, min(self.position, events.count), events.step, events.delay_us)]

    def close(self) -> None:
        """`Reader.close`."""


def bids_of(batch: pa.RecordBatch) -> Mapping[str, Any]:
    """The bids of a batch, as columns. A filter of the whole batch would copy the events of other kinds too."""
    bids = batch["bid"].filter(pc.equal(batch["kind"], BID))
    return dict(zip(BID_TYPE.names, bids.flatten(), strict=True))


def passed(events: ColumnStreamlet) -> ColumnStreamlet:
    """q0: all events."""
    return events.map_columns(lambda batch: batch)


def in_euro(events: ColumnStreamlet) -> ColumnStreamlet:
    """q1: bids with prices in euro cents."""
    return events.map_columns(bids_of).map_columns(_in_euro)


def _in_euro(bids: pa.RecordBatch) -> pa.RecordBatch:
    euro = pc.divide(pc.multiply(bids["price"], 89), 100)
    return bids.set_column(bids.schema.get_field_index("price"), "price", euro)


def selection(events: ColumnStreamlet) -> ColumnStreamlet:
    """q2: the prices of bids for some auctions."""
    return events.map_columns(bids_of).filter_columns(_is_selected).select("auction", "price")


def _is_selected(bids: pa.RecordBatch) -> pa.Array:
    return pa.array(bids["auction"].to_numpy() % AUCTION_SKIP == 0)


def hot_items(events: ColumnStreamlet) -> Streamlet[tuple[int, int, int]]:
    """q5: the auctions with the most bids in each window."""
    bids = events.map_columns(_auctions_and_times).event_time("time")
    return hottest_auctions(bids.count_by_key_and_window("auction", sliding_window(SIZE_S, PERIOD_S)))


def _auctions_and_times(batch: pa.RecordBatch) -> Mapping[str, Any]:
    """Two columns of `bids_of`: the others would be copied for nothing."""
    bids, there = batch["bid"], pc.equal(batch["kind"], BID)
    return {name: bids.field(name).filter(there) for name in ("auction", "time")}


def highest_bids(events: ColumnStreamlet) -> Streamlet[tuple[int, int, int, int]]:
    """q7: the bids with the highest price in each window. Of a batch, few bids can have it."""
    rows = events.map_columns(bids_of).map_columns(_highest_of_batch).rows()
    timed = rows.event_time(lambda row: row["time"])
    return highest_bid(timed.map(lambda row: (row["price"], row["auction"], row["bidder"])))


def _highest_of_batch(bids: pa.RecordBatch) -> pa.RecordBatch:
    windows = bids["time"].cast(pa.int64()).to_numpy() // (SIZE_S * 1000)
    prices = bids["price"].to_numpy()
    keep = np.zeros(len(prices), dtype=np.bool_)
    for window in _distinct(windows):
        inside = windows == window
        keep |= inside & (prices == prices[inside].max())
    return bids.filter(pa.array(keep))


def _distinct(windows: Integers) -> Iterator[int]:
    yield from np.unique(windows).tolist()


COLUMN_QUERIES: Mapping[str, Callable[[ColumnStreamlet], Any]] = {
    "q0": passed,
    "q1": in_euro,
    "q2": selection,
    "q5": hot_items,
    "q7": highest_bids,
}
