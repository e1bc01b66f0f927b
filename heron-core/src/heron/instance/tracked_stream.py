"""An output stream whose tuples are tracked: the same log, flushed with roots and keys.

A spout's rows are roots of their own; a bolt's hang on what they are anchored to. Keys are derived from the batch's key,
the row's number and the destination, so that a flush sends none of them (design D5).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heron.api.definition import StreamDefinition
from heron.instance.anchors import Anchors, Rooted
from heron.instance.batch_codec import encode_rows
from heron.instance.in_batch import InBatch
from heron.instance.out_stream import OutStream, StreamOrigin, StreamRoutes
from heron.instance.root_book import RootBook
from heron.ipc.edge_key import U64, edge_keys, row_numbers
from heron.ipc.frame import OptionTag, option
from heron.ipc.tracking import COUNTER_BITS, fails, new_roots_derived, new_roots_listed

__all__ = ["AnchoredStream", "RootStream"]

Rows = NDArray[np.int64]


@dataclass(slots=True)
class _Flush:
    """One flush under way: its segments, the XOR of each row's keys, and the rows that cannot travel."""

    rows: list[object]
    batch_key: int
    segments: list[bytes] = field(default_factory=list)
    bad: set[int] = field(default_factory=set)
    whole_tasks: tuple[int, ...] | None = None
    totals: U64 | None = None

    def add_keys(self, numbers: U64, task_ids: tuple[int, ...]) -> None:
        """Copies of these rows go to these tasks."""
        if self.totals is None:
            self.totals = np.zeros(len(self.rows), dtype=np.uint64)
        places = numbers.astype(np.int64)
        for task_id in task_ids:
            self.totals[places] ^= edge_keys(self.batch_key, numbers, task_id)


class _TrackedStream(OutStream):
    """What both kinds have in common."""

    def _take_rows(self) -> list[object]:
        rows = self.rows.copy()
        self.rows.clear()
        self.emitted += len(rows)
        return rows

    def _send(self, rows: list[object], root_options: Callable[[U64 | None], bytes]) -> _Flush:
        """Encodes the rows; `root_options` gives the options that name the roots of these row numbers (None: all)."""
        flush = _Flush(rows, secrets.randbits(64))
        key = option(OptionTag.BATCH_KEY, flush.batch_key.to_bytes(8, "little"))
        parts = self._parts(len(rows))
        only_part = len(parts) == 1
        for tasks, numbers in parts:
            for lot, payload, count in self._encoded(rows, numbers, flush.bad):
                if lot is None and only_part:
                    flush.whole_tasks = tasks  # the usual case: what is derived here can be derived there
                else:
                    flush.add_keys(row_numbers(count) if lot is None else lot, tasks)
                flush.segments.append(self.tuples_segment(tasks, payload, count, key + root_options(lot)))
        return flush

    def _parts(self, count: int) -> list[tuple[tuple[int, ...], list[int]]]:
        """``(tasks, row numbers)`` of each part, the numbers ascending."""
        everything = list(range(count))
        parts = [(self.routes.whole, everything)] if self.routes.whole else []
        for splitter in self.routes.splitters:
            parts += [((task,), chosen) for task, chosen in splitter.split(everything)]  # type: ignore[arg-type, misc]
        self.tasks_of_last = tuple(task for tasks, _ in parts for task in tasks)
        return parts

    def _encoded(
        self, rows: list[object], numbers: list[int], bad: set[int]
    ) -> list[tuple[U64 | None, bytes, int]]:
        """``(row numbers, payload, rows)`` of a part, numbers None for all; what cannot travel goes to `bad`."""
        chosen = rows if len(numbers) == len(rows) else list(map(rows.__getitem__, numbers))
        encoded: list[tuple[U64 | None, bytes, int]] = []
        at = 0

        def reject(row: object, error: Exception) -> None:
            nonlocal at
            bad.add(numbers[at])
            at += 1
            self.origin.rejected(self.definition.name, row, error)

        for part, payload in encode_rows(
            chosen,
            self.arity,
            batch_bytes=self.origin.batch_bytes,
            tuple_max_bytes=self.origin.tuple_max_bytes,
            rejected=reject,
        ):
            self.adapt(len(part), len(payload))
            whole = len(part) == len(rows)
            lot = None if whole else np.array(numbers[at : at + len(part)], dtype=np.uint64)
            encoded.append((lot, payload, len(part)))
            at += len(part)
        return encoded


class RootStream(_TrackedStream):
    """A stream whose rows are roots: a spout's, or what a bolt emits in `finish`."""

    __slots__ = ("book", "ids")

    def __init__(
        self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin, book: RootBook
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.book = book
        self.ids: list[object] = []

    def flush(self) -> list[bytes]:
        """Rows that have an id become roots; without any, the batch is sent as in a topology without acks."""
        ids = self.ids.copy()
        self.ids.clear()
        untracked = ids.count(None)
        if untracked == len(ids):
            return super().flush()
        task_id, rows = self.origin.task_id, self._take_rows()
        tracked = ids if not untracked else [tup_id for tup_id in ids if tup_id is not None]
        base = self.book.open(tracked)
        root_base = (task_id << COUNTER_BITS) | base
        if not untracked:
            flush = self._send(rows, lambda lot: _base_options(root_base, lot))
            if flush.whole_tasks is not None and not flush.bad:
                roots = new_roots_derived(task_id, base, flush.batch_key, len(rows), flush.whole_tasks)
                return [roots, *flush.segments]
            return self._listed(flush, base, np.arange(len(rows)))
        at = np.array([row for row, tup_id in enumerate(ids) if tup_id is not None], dtype=np.int64)
        roots_of_rows = row_numbers(len(at)) + np.uint64(root_base)
        flush = self._send(rows, lambda lot: _listed_options(roots_of_rows, at, len(rows), lot))
        return self._listed(flush, base, at)

    def _listed(self, flush: _Flush, base: int, at: Rows) -> list[bytes]:
        """The roots by list: `at` are the rows that have one, in the order of their counters."""
        xors = _totals(flush)[at]
        bad = np.flatnonzero(np.isin(at, np.array(sorted(flush.bad), dtype=np.int64)))
        xors[bad] |= np.uint64(1)  # not zero: in flight until its fail, right behind, is read
        roots = new_roots_listed(self.origin.task_id, base, xors)
        root_base = np.uint64((self.origin.task_id << COUNTER_BITS) | base)
        return [roots, *flush.segments, *fails(bad.astype(np.uint64) + root_base)]


class AnchoredStream(_TrackedStream):
    """A bolt's stream: its rows hang on received tuples, or on nothing."""

    __slots__ = ("anchors", "in_work")

    def __init__(
        self,
        number: int,
        definition: StreamDefinition,
        routes: StreamRoutes,
        origin: StreamOrigin,
        in_work: list[InBatch | None],
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.in_work = in_work  # the batch whose tuples are given to `process` now: one place, looked at by all streams
        self.anchors = Anchors()

    def flush(self) -> list[bytes]:
        """Rows without any anchor are sent as in a topology without acks.

        The batches that rows hang on learn the keys of the copies here: their acks must wait for it.
        """
        self.anchors.resolve(self.in_work[0])
        regular, irregular = self.anchors.take()
        if not regular and not irregular:
            return super().flush()
        rows = self._take_rows()
        roots, at = _roots_of(len(rows), regular, irregular)
        flush = self._send(rows, lambda lot: _listed_options(roots, at, len(rows), lot))
        totals = _totals(flush)
        for rooted in regular:
            hung = rooted.places >= 0
            rooted.batch.add_children(rooted.places[hung], totals[rooted.start :][: len(hung)][hung])
        for row, parents in irregular.items():
            for batch, place in parents:
                batch.add_children(np.array([place]), totals[row : row + 1])
        bad = np.array(sorted(flush.bad), dtype=np.int64)
        return [*flush.segments, *fails(roots[np.isin(at, bad)])]


def _totals(flush: _Flush) -> U64:
    if flush.whole_tasks is not None:
        flush.add_keys(row_numbers(len(flush.rows)), flush.whole_tasks)
        flush.whole_tasks = None
    return np.zeros(len(flush.rows), dtype=np.uint64) if flush.totals is None else flush.totals


def _base_options(root_base: int, lot: U64 | None) -> bytes:
    options = option(OptionTag.ROOT_BASE, root_base.to_bytes(8, "little"))
    return options if lot is None else options + option(OptionTag.ROW_NUMBERS, lot.tobytes())


def _listed_options(roots: U64, at: Rows, count: int, lot: U64 | None) -> bytes:
    """The roots of a lot of rows; `at` are the rows of the whole flush that the roots belong to, ascending."""
    options = b""
    if lot is not None:
        options = option(OptionTag.ROW_NUMBERS, lot.tobytes())
        place_of = np.full(count, -1, dtype=np.int64)
        place_of[lot.astype(np.int64)] = np.arange(len(lot))
        places = place_of[at]
        roots, at, count = roots[places >= 0], places[places >= 0], len(lot)
    options += option(OptionTag.ROOTS, roots.tobytes())
    if len(at) == count and bool((at == np.arange(count)).all()):
        return options
    return options + option(OptionTag.ROOT_ROWS, at.astype("<i8", copy=False).tobytes())


def _roots_of(
    count: int, regular: list[Rooted], irregular: dict[int, list[tuple[InBatch, int]]]
) -> tuple[U64, Rows]:
    """``(roots, rows)``: each root of each row, by ascending row."""
    roots: list[U64] = []
    rows: list[Rows] = []
    for rooted in regular:
        hung = np.flatnonzero(rooted.places >= 0)
        places = rooted.places[hung]
        if rooted.batch.root_rows is None:
            roots.append(rooted.batch.roots_by_row()[places])
            rows.append(hung + rooted.start)
        else:
            for row, place in zip((hung + rooted.start).tolist(), places.tolist(), strict=True):
                _append(roots, rows, row, set(rooted.batch.roots_of(place)))
    for row, parents in irregular.items():
        _append(roots, rows, row, {root for batch, place in parents for root in batch.roots_of(place)})
    if not roots:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    all_roots, all_rows = np.concatenate(roots), np.concatenate(rows)
    if irregular:
        order = np.argsort(all_rows, kind="stable")
        all_roots, all_rows = all_roots[order], all_rows[order]
    return all_roots, all_rows


def _append(roots: list[U64], rows: list[Rows], row: int, of_row: set[int]) -> None:
    roots.append(np.array(sorted(of_row), dtype=np.uint64))
    rows.append(np.full(len(of_row), row, dtype=np.int64))
