"""The tracked segments of a flush, computed with arrays: for divided batches and for anchored rows.

Needs numpy; `heron.instance.output.tracked_stream` loads it for the first flush that needs it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from heron.instance.acks.batch_arrays import BatchArrays, Rows, arrays_of, row_places
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.output.out_stream import OutStream
from heron.instance.output.tracked_stream import AnchoredRows, AnchoredStream, Parents, RootStream
from heron.ipc.frames.frame import OptionTag, destination_lists, option
from heron.ipc.frames.tracking import COUNTER_BITS
from heron.ipc.frames.tracking_arrays import U64, acks, edge_keys, fails, new_roots_listed, row_numbers

if TYPE_CHECKING:
    from heron.instance.output.column_output import ColumnOutput
    from heron.instance.output.column_routes import ColumnPart

__all__ = ["FlushArrays"]

RootOptions = Callable[[Rows | None], bytes]


class FlushArrays:
    """The segments of flushes of tracked streams. It has no state."""

    def root_segments(
        self, stream: RootStream, rows: list[object], base: int, with_id: list[int] | None
    ) -> list[bytes]:
        """The segments of a flush of roots from `base` on; `with_id` are the rows that are roots (None: all)."""
        task_id = stream.origin.task_id
        root_base = (task_id << COUNTER_BITS) | base
        if with_id is None:
            at: Rows = np.arange(len(rows), dtype=np.int64)
            flush = _flush(stream, rows, lambda lot: _base_options(root_base, lot), numbered=True)
        else:
            at = row_places(with_id)
            roots = row_numbers(len(at)) + np.uint64(root_base)
            flush = _flush(stream, rows, _RowRoots(roots, at, len(rows)).options)
        xors = flush.totals[at]
        failed: list[bytes] = []
        if flush.bad:
            bad = np.flatnonzero(np.isin(at, row_places(sorted(flush.bad))))
            xors[bad] |= np.uint64(1)  # not zero: in flight until its fail, which follows directly, is read
            failed += fails(bad.astype(np.uint64) + np.uint64(root_base))
        return [*new_roots_listed(task_id, base, xors), *flush.segments, *failed]

    def anchored_segments(
        self,
        stream: AnchoredStream,
        rows: list[object],
        regular: list[AnchoredRows],
        irregular: dict[int, list[tuple[TrackedBatch, int]]],
    ) -> list[bytes]:
        """The segments of a flush of anchored rows; the batches of the anchors learn the keys of the copies."""
        anchored = [_anchored_rows(each) for each in regular]
        roots, at = _roots_of(anchored, irregular)
        flush = _flush(stream, rows, _RowRoots(roots, at, len(rows)).options)
        failed: list[bytes] = []
        if flush.bad:
            bad = row_places(sorted(flush.bad))
            # Keys that are never acked: acks of the anchors overtake data, and so would overtake these fails.
            flush.totals[bad] ^= edge_keys(secrets.randbits(64), bad.astype(np.uint64), 0)
            failed += fails(roots[np.isin(at, bad)])
        for batch_arrays, of_rows, places in anchored:
            batch_arrays.add_children(places, flush.totals[of_rows])
        for row, parents in irregular.items():
            for batch, place in parents:
                arrays_of(batch).add_children(np.array([place]), flush.totals[row : row + 1])
            even = _even_roots(parents)
            stream.tracker.corrections.extend(acks(even, np.full(len(even), flush.totals[row])))
        return [*flush.segments, *failed]

    def anchored_options(self, stream: AnchoredStream, rows: int, anchored: list[AnchoredRows]) -> bytes | None:
        """The options of an encoded batch that all tasks of a stream get; the batches of the anchors learn its keys.

        None if the roots do not fit into a segment; nothing has changed then.
        """
        parents = [_anchored_rows(each) for each in anchored]
        roots = _RowRoots(*_roots_of(parents, {}), rows).options(None)
        if len(roots) > stream.origin.options_max_bytes:
            return None
        batch_key, totals = secrets.randbits(64), np.zeros(rows, dtype=np.uint64)
        for task_id in stream.routes.whole:
            totals ^= edge_keys(batch_key, row_numbers(rows), task_id)
        for batch_arrays, of_rows, places in parents:
            batch_arrays.add_children(places, totals[of_rows])
        return option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + roots

    def anchored_columns(
        self,
        stream: AnchoredStream,
        columns: ColumnOutput,
        parts: Sequence[ColumnPart],
        rows: int,
        parents: Parents,
    ) -> list[bytes]:
        """The segments of an emitted batch of `rows` rows; the batches of its parents learn the key of its copies."""
        anchors = [(arrays_of(batch), row_places(places)) for batch, places in parents]
        found = np.concatenate([arrays.roots_of(places)[0] for arrays, places in anchors])
        roots, times = np.unique(found, return_counts=True)
        segments, key = columns.anchored_segments(parts, rows, roots)
        for arrays, places in anchors:
            arrays.add_children(places, np.full(len(places), key, dtype=np.uint64))
        even = roots[times % 2 == 0]
        stream.tracker.corrections.extend(acks(even, np.full(len(even), key, dtype=np.uint64)))
        return segments


RowsOfBatch = tuple[BatchArrays, Rows, Rows]
"""``(batch, rows, places)``: rows of a flush, each anchored to the tuple at its place in the batch."""


@dataclass(slots=True)
class _Flush:
    """A flush in progress: its segments, the XOR of each row's keys, and the rows that cannot be encoded."""

    totals: U64
    segments: list[bytes] = field(default_factory=list)
    bad: set[int] = field(default_factory=set)


def _flush(stream: OutStream, rows: list[object], root_options: RootOptions, *, numbered: bool = False) -> _Flush:
    """Encodes the rows; `root_options` returns the options that list the roots of a lot of rows (None: of all rows).

    With `numbered`, the roots and keys of a lot derive from the numbers of its rows in the flush. Without it, each lot
    is a batch with rows from 0 on, and no numbers are sent.
    """
    flush = _Flush(np.zeros(len(rows), dtype=np.uint64))
    batch_key = secrets.randbits(64)
    for tasks, numbers in _parts(stream, len(rows)):
        for lot, places, payload, roots in _lots(stream, rows, numbers, flush.bad, root_options):
            if numbered and places is not None:
                keyed = places.astype(np.uint64)
            else:
                keyed, batch_key = row_numbers(len(lot)), secrets.randbits(64)
            for task_id in tasks:
                if places is None:
                    flush.totals ^= edge_keys(batch_key, keyed, task_id)
                else:
                    flush.totals[places] ^= edge_keys(batch_key, keyed, task_id)
            options = option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + roots
            traced = stream.traced_in(lot) if stream.points else ()
            for chosen in destination_lists(tasks):
                flush.segments.append(stream.tuples_segment(chosen, payload, len(lot), options, traced=traced))
    return flush


def _lots(
    stream: OutStream, rows: list[object], numbers: list[int], bad: set[int], root_options: RootOptions
) -> Iterator[tuple[list[int], Rows | None, bytes, bytes]]:
    """``(row numbers, the same as an array or None for all rows, payload, root options)`` of each lot of a part.

    A lot whose roots do not fit into a segment is halved. A single row with too many roots is rejected.
    """
    most_bytes = stream.origin.options_max_bytes
    for lot, payload in _encoded(stream, rows, numbers, bad):
        places = None if len(lot) == len(rows) else row_places(lot)
        roots = root_options(places)
        if len(roots) <= most_bytes:
            yield lot, places, payload, roots
        elif len(lot) == 1:
            bad.add(lot[0])
            stream.origin.rejected(stream.definition.name, rows[lot[0]], stream.origin.too_many_roots(len(roots)))
        else:
            middle = len(lot) // 2
            for half in (lot[:middle], lot[middle:]):
                yield from _lots(stream, rows, half, bad, root_options)


def _parts(stream: OutStream, count: int) -> list[tuple[tuple[int, ...], list[int]]]:
    """``(tasks, row numbers)`` of each part of a flush, with ascending numbers."""
    everything, routes = list(range(count)), stream.routes
    parts = [(routes.whole, everything)] if routes.whole else []
    for splitter in routes.splitters:
        parts += [((task,), chosen) for task, chosen in splitter.split(everything)]  # type: ignore[arg-type, misc]
    stream.tasks_of_last = tuple(task for tasks, _ in parts for task in tasks)
    return parts


def _encoded(stream: OutStream, rows: list[object], numbers: list[int], bad: set[int]) -> list[tuple[list[int], bytes]]:
    """``(row numbers, payload)`` of a part; adds the numbers of rows that cannot be encoded to `bad`."""
    chosen = rows if len(numbers) == len(rows) else _chosen(rows, numbers)
    encoded: list[tuple[list[int], bytes]] = []
    at = 0

    def reject(row: object, error: Exception) -> None:
        nonlocal at
        bad.add(numbers[at])
        at += 1
        stream.origin.rejected(stream.definition.name, row, error)

    for part, payload in stream.origin.encoded(chosen, stream.definition.fields, reject):
        stream.adapt(len(part), len(payload))
        encoded.append((numbers[at : at + len(part)], payload))
        at += len(part)
    return encoded


def _chosen(rows: list[object], numbers: list[int]) -> list[object]:
    # one call for all rows is twice as fast as one per row (measured); for a single row `itemgetter` returns no tuple
    return list(itemgetter(*numbers)(rows)) if len(numbers) > 1 else [rows[number] for number in numbers]


def _base_options(root_base: int, lot: Rows | None) -> bytes:
    options = option(OptionTag.ROOT_BASE, root_base.to_bytes(8, "little"))
    return options if lot is None else options + option(OptionTag.ROW_NUMBERS, lot.tobytes())


class _RowRoots:
    """The roots of a flush's rows: `at` is the row of each root, ascending."""

    __slots__ = ("_at", "_one_each", "_roots", "_rows")

    def __init__(self, roots: U64, at: Rows, rows: int) -> None:
        self._roots, self._at, self._rows = roots, at, rows
        self._one_each = _is_range(at, rows)

    def options(self, lot: Rows | None) -> bytes:
        """`RootOptions`."""
        if self._one_each:
            return option(OptionTag.ROOTS, (self._roots if lot is None else self._roots[lot]).tobytes())
        roots, at, rows = self._roots, self._at, self._rows
        if lot is not None:
            place_of = np.full(rows, -1, dtype=np.int64)
            place_of[lot] = np.arange(len(lot))
            places = place_of[at]
            roots, at, rows = roots[places >= 0], places[places >= 0], len(lot)
        options = option(OptionTag.ROOTS, roots.tobytes())
        return options if _is_range(at, rows) else options + option(OptionTag.ROOT_ROWS, at.tobytes())


def _is_range(at: Rows, rows: int) -> bool:
    return len(at) == rows and bool((at == np.arange(rows)).all())


def _anchored_rows(anchored: AnchoredRows) -> RowsOfBatch:
    places = row_places(anchored.places)
    if anchored.batch.is_unit:
        places = np.minimum(places, 0)
    rows = np.arange(anchored.start, anchored.start + len(places), dtype=np.int64)
    has_anchor = places >= 0
    if not has_anchor.all():
        places, rows = places[has_anchor], rows[has_anchor]
    return arrays_of(anchored.batch), rows, places


def _roots_of(anchored: list[RowsOfBatch], irregular: dict[int, list[tuple[TrackedBatch, int]]]) -> tuple[U64, Rows]:
    """``(roots, rows)``: each root of each row, in ascending order of rows."""
    roots: list[U64] = [np.empty(0, dtype=np.uint64)]
    rows: list[Rows] = [np.empty(0, dtype=np.int64)]
    for batch_arrays, of_rows, places in anchored:
        found, which = batch_arrays.roots_of(places)
        roots.append(found)
        rows.append(of_rows[which])
    for row, parents in irregular.items():
        of_row = np.unique(np.concatenate([arrays_of(batch).roots_of(np.array([at]))[0] for batch, at in parents]))
        roots.append(of_row)
        rows.append(np.full(len(of_row), row, dtype=np.int64))
    all_roots, all_rows = np.concatenate(roots), np.concatenate(rows)
    if irregular:
        order = np.argsort(all_rows, kind="stable")
        return all_roots[order], all_rows[order]
    return all_roots, all_rows


def _even_roots(parents: list[tuple[TrackedBatch, int]]) -> U64:
    """Roots that an even number of a row's parents have: the row's key cancels in the acks of these parents."""
    if len(parents) == 1:
        return np.empty(0, dtype=np.uint64)
    roots = [arrays_of(batch).roots_of(np.array([at]))[0] for batch, at in parents]
    found, times = np.unique(np.concatenate(roots), return_counts=True)
    even: U64 = found[times % 2 == 0]
    return even
