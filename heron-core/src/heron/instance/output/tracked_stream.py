"""Output streams whose tuples are tracked: the same buffer, flushed with roots and keys.

A spout's rows are roots. A bolt's rows belong to the roots of their anchors. Keys derive from the batch's key, the
row's number and the destination, so that a flush sends no keys. A flush of roots to tasks that receive all
rows needs no arrays; `heron.instance.output.flush_arrays` handles the rest.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Protocol, cast

from heron.api.definition import StreamDefinition
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple
from heron.author_text import class_name, short_text
from heron.driver_kit.loading import load_object
from heron.errors import EmitError, UsageError
from heron.instance.acks.foreign_tuples import foreign_tuple
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.ipc.frames.frame import OptionTag, destination_lists, option
from heron.ipc.frames.tracking import COUNTER_BITS, MAX_DERIVED_KEYS, MAX_DERIVED_ROWS, new_roots_derived
from heron.spi.serializer import Encoding

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.instance.output.column_output import ColumnOutput
    from heron.instance.output.column_routes import ColumnPart

__all__ = [
    "UNANCHORED",
    "AnchorHost",
    "AnchoredRows",
    "AnchoredStream",
    "Anchors",
    "Parents",
    "PlainAnchors",
    "RootStream",
    "anchor_tuples",
    "checked_anchors",
    "listed_anchors",
]

PlainAnchors = Sequence[tuple[PlainBatch | Tuple, Sequence[int]]]
"""See `heron.api.PlainBolt.emit_plain`."""

Parents = Sequence[tuple[TrackedBatch, Sequence[int]]]
"""Rows of received batches, ascending in each."""

UNANCHORED = Tuple()
"""Marks a row without anchor; its place is -1, which is no place of a batch."""


class RootStream(OutStream):
    """A stream whose rows are roots: of a spout, or of a bolt in `finish`."""

    __slots__ = ("ids", "pending")

    def __init__(
        self,
        number: int,
        definition: StreamDefinition,
        routes: StreamRoutes,
        origin: StreamOrigin,
        pending: PendingRoots,
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.pending = pending
        self.ids: list[object] = []

    def emit_root(
        self,
        columns: ColumnOutput,
        batch: RecordBatch,
        direct: int | None,
        tup_id: object,
        ids: Sequence[object] | None,
    ) -> list[bytes]:
        """Sends a batch as one root, or each of its rows as one; without an id it is untracked."""
        if tup_id is None and ids is None:
            return self.emit_columns(columns, batch, direct)
        parts = columns.parts(batch, direct)  # first: it may fail, and then nothing has changed
        before = self.flush()
        base = self._open([tup_id] if ids is None else list(ids))
        segments = columns.root_segments(parts, batch.num_rows, base, each=ids is not None)
        if self.points:
            self._await_outcomes(base, [0] * batch.num_rows if ids is None else range(batch.num_rows))
        return before + segments

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """Makes roots of the rows that have an id; a batch without any id is sent untracked."""
        ids = self.ids[: len(rows)]
        del self.ids[: len(rows)]
        untracked = len([tup_id for tup_id in ids if tup_id is None])  # by identity: ids may be arrays
        if untracked == len(ids):
            return super().segments_of(rows)
        if untracked:
            with_id = [row for row, tup_id in enumerate(ids) if tup_id is not None]
            base = self._open([ids[row] for row in with_id])
            if self.points:
                self._await_outcomes(
                    base, [place - 1 for place in accumulate(tup_id is not None for tup_id in ids)], ids
                )
            return _flush_arrays().root_segments(self, rows, base, with_id)
        base = self._open(ids)
        if self.points:
            self._await_outcomes(base, range(len(rows)))
        whole = self._whole(rows, base) if self.routes.whole and not self.routes.splitters else None
        return whole if whole is not None else _flush_arrays().root_segments(self, rows, base, None)

    def whole_plain(self, payload: bytes, rows: int, of_rows: object, options: bytes = b"") -> list[bytes] | None:
        """`OutStream.whole_plain`; `of_rows` is None, or has an id or None for each row."""
        if of_rows is None:
            return super().whole_plain(payload, rows, None)
        ids, tasks = list(cast("Sequence[object]", of_rows)), self.routes.whole
        if not tasks or rows > _most_derived(tasks) or any(each is None for each in ids):
            return None
        self.count(rows)
        return self._derived(self._open(ids), payload, rows, Encoding.PLAIN)

    def add_plain(self, columns: list[Sequence[object]], rows: int, of_rows: object) -> None:
        """`OutStream.add_plain`."""
        self.ids += repeat(None, rows) if of_rows is None else cast("Sequence[object]", of_rows)
        super().add_plain(columns, rows, None)

    def take_back(self) -> bool:
        """`OutStream.take_back`."""
        if taken := super().take_back():
            self.ids.pop()
        return taken

    def _open(self, ids: list[object]) -> int:
        """Opens a root for each of these ids; `heron.instance.output.kept_stream` keeps more of them."""
        return self.pending.open(ids)

    def _await_outcomes(self, base: int, roots: Sequence[int], ids: Sequence[object] = ()) -> None:
        """Notes the traced roots among rows that are roots from `base` on; `roots` are their numbers by row."""
        for point in self.points:
            if not ids or ids[point.row] is not None:
                self.origin.spans.await_outcome(base + roots[point.row], point)

    def _whole(self, rows: list[object], base: int) -> list[bytes] | None:
        """The usual case: all rows in one segment, whose keys the receiver derives too; None in other cases."""
        tasks = self.routes.whole
        payloads: list[bytes] = []
        for part, payload in self.origin.encoded(rows, self.definition.fields, _reported_later):
            if len(part) != len(rows) or len(rows) > _most_derived(tasks):
                return None
            payloads.append(payload)
        if not payloads:
            return None
        self.adapt(len(rows), len(payloads[0]))
        return self._derived(base, payloads[0], len(rows))

    def _derived(self, base: int, payload: bytes, rows: int, encoding: int | None = None) -> list[bytes]:
        """The segments of rows that are roots from `base` on, and that go to the same tasks."""
        tasks = self.tasks_of_last = self.routes.whole
        task_id, batch_key = self.origin.task_id, secrets.randbits(64)
        root_base = (task_id << COUNTER_BITS) | base
        options = option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + option(
            OptionTag.ROOT_BASE, root_base.to_bytes(8, "little")
        )
        roots = new_roots_derived(task_id, base, batch_key, rows, tasks)
        traced = self.traced_in(range(rows)) if self.points else ()
        return [
            roots,
            *(
                self.tuples_segment(chosen, payload, rows, options, encoding=encoding, traced=traced)
                for chosen in destination_lists(tasks)
            ),
        ]


class AnchorHost(Protocol):
    """What the output streams of a bolt need from its ack tracker."""

    @property
    def in_work(self) -> TrackedBatch | None:
        """The batch whose tuples are passed to `process` now."""
        ...

    def received(self, batch: object) -> object:
        """The tracked batch of a record batch that the component received, or `UNTRACKED`; None for other objects."""
        ...

    @property
    def wrong(self) -> list[UsageError]:
        """Errors for acks and anchors of what the component did not receive."""
        ...

    @property
    def corrections(self) -> list[bytes]:
        """Ack segments that must reach the ledger no later than the acks of the anchors."""
        ...


class AnchoredStream(OutStream):
    """A bolt's stream: its rows are anchored to received tuples, or to nothing."""

    __slots__ = ("anchors", "tracker")

    def __init__(
        self,
        number: int,
        definition: StreamDefinition,
        routes: StreamRoutes,
        origin: StreamOrigin,
        tracker: AnchorHost,
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.tracker = tracker
        self.anchors = Anchors()

    def take_back(self) -> bool:
        """`OutStream.take_back`."""
        if taken := super().take_back():
            self.anchors.parents.pop()
        return taken

    def parents_of(self, anchors: object | None) -> Parents:
        """The rows that an emit of columns is anchored to, without those whose acks have left.

        Raises:
            EmitError: when `anchors` is not an iterable of received tuples and batches.
        """
        parents: dict[TrackedBatch, set[int]] = {}
        for anchor in () if anchors is None else listed_anchors(anchors):
            batch, places = self._places_of(anchor)
            if isinstance(batch, TrackedBatch):
                if batch.acks_sent:
                    places = filter(batch.takes_children, places)
                parents.setdefault(batch, set()).update((0 for _ in places) if batch.is_unit else places)
        return [(batch, sorted(rows)) for batch, rows in parents.items() if rows]

    def _places_of(self, anchor: object) -> tuple[object, Iterable[int]]:
        """``(batch, places)`` of a received tuple or record batch."""
        batch = self.tracker.received(anchor)
        if batch is not None:
            return batch, range(batch.rows) if isinstance(batch, TrackedBatch) else ()
        (tup,) = anchor_tuples(self.tracker, (anchor,))
        return self.tracker.in_work if tup.id is None else tup.id, (tup._index,) if tup._index >= 0 else ()

    def emit_anchored(
        self, columns: ColumnOutput, batch: RecordBatch, direct: int | None, parents: Parents
    ) -> list[bytes]:
        """Sends a batch under the roots of these rows."""
        if not parents:
            return self.emit_columns(columns, batch, direct)
        parts = columns.parts(batch, direct)  # first: it may fail, and then nothing has changed
        return self.flush() + _flush_arrays().anchored_columns(self, columns, parts, batch.num_rows, parents)

    def whole_plain(self, payload: bytes, rows: int, of_rows: object, options: bytes = b"") -> list[bytes] | None:
        """`OutStream.whole_plain`; `of_rows` is None, or `PlainAnchors`."""
        if anchored := self._anchored(of_rows, 0):
            found = _flush_arrays().anchored_options(self, rows, anchored)
            return None if found is None else super().whole_plain(payload, rows, None, found)
        return super().whole_plain(payload, rows, None)

    def add_plain(self, columns: list[Sequence[object]], rows: int, of_rows: object) -> None:
        """`OutStream.add_plain`."""
        self.anchors.resolve(self.tracker.in_work, len(self.rows))
        self.anchors.add(self._anchored(of_rows, len(self.rows)), rows)
        super().add_plain(columns, rows, None)

    def _anchored(self, of_rows: object, start: int) -> list[AnchoredRows]:
        """The anchors of the rows of a batch, whose first row has the number `start` in the buffer."""
        found = []
        for anchor, given in cast("PlainAnchors", of_rows or ()):
            tracked, places = anchor.id, list(given)
            if isinstance(anchor, Tuple):
                tracked, places = anchor.id or self.tracker.in_work, [anchor._index] * len(places)
            if isinstance(tracked, TrackedBatch):
                if tracked.acks_sent:
                    places = [place if place >= 0 and tracked.takes_children(place) else -1 for place in places]
                if max(places, default=-1) >= 0:
                    found.append(AnchoredRows(start, tracked, places))
            start += len(places)
        return found

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """Sends rows without any anchor untracked.

        The batches of the anchors learn the keys of the copies here; their acks must wait for this flush.
        """
        self.anchors.resolve(self.tracker.in_work, len(rows))
        regular, irregular = self.anchors.take()
        if not regular and not irregular:
            return super().segments_of(rows)
        return _flush_arrays().anchored_segments(self, rows, regular, irregular)


def anchor_tuples(host: AnchorHost, anchors: object) -> tuple[Tuple, ...]:
    """The anchors of an emit; each record batch that the component received counts as the tuples of its rows.

    A tuple that this task did not receive is noted in `host.wrong`, and has no effect.

    Raises:
        EmitError: when `anchors` is not an iterable of received tuples and batches.
    """
    found = checked_anchors(tup for anchor in listed_anchors(anchors) for tup in _tuples_of(host, anchor))
    for tup in found:
        if tup._index < 0 and (wrong := foreign_tuple("anchor", tup)) is not None:
            host.wrong.append(wrong)
    return found


def _tuples_of(host: AnchorHost, anchor: object) -> list[Tuple]:
    batch = None if isinstance(anchor, Tuple) else host.received(anchor)
    if batch is None:
        return [anchor]  # type: ignore[list-item]  # checked by the caller
    return [Tuple(batch, (), place) for place in range(batch.rows)] if isinstance(batch, TrackedBatch) else []


def checked_anchors(anchors: object) -> tuple[Tuple, ...]:
    """The anchors of an emit, as a tuple of any length.

    Raises:
        EmitError: when `anchors` is not an iterable of received tuples.
    """
    found = tuple(listed_anchors(anchors))
    for each in found:
        if not isinstance(each, Tuple):
            msg = f"anchors has a {class_name(each)}; give what was received, not a copy"
            raise EmitError(msg)
    return cast("tuple[Tuple, ...]", found)


def listed_anchors(anchors: object) -> Iterable[object]:
    """The anchors of an emit, whose types are not checked yet.

    Raises:
        EmitError: when `anchors` is not an iterable, or is a tuple itself.
    """
    if isinstance(anchors, Tuple):  # it is iterable too, and would give its fields
        msg = f"anchors={short_text(anchors, 120)} is a tuple itself; give a list: anchors=[tup]"
        raise EmitError(msg)
    if not isinstance(anchors, Iterable):
        msg = f"anchors is a {class_name(anchors)}; give a list of received tuples, such as [tup]"
        raise EmitError(msg)
    return anchors


@dataclass(frozen=True, slots=True)
class AnchoredRows:
    """Rows of the buffer from `start` on, each anchored to one tuple of `batch` by its place; -1 for no anchor."""

    start: int
    batch: TrackedBatch
    places: list[int]


class Anchors:
    """The anchors of a stream's unflushed rows. Pure.

    An emit appends its anchor unchanged to `parents`. While the anchor's batch is in work, `resolve` turns the anchors
    of the rows since the last call into places of the batch. The batch's tuples can then be reused before the rows are
    flushed. An anchor whose ack has left counts as no anchor: no message could tell the ledger about rows under it.
    """

    __slots__ = ("_irregular", "_regular", "_resolved", "parents")

    def __init__(self) -> None:
        self.parents: list[Tuple | tuple[Tuple, ...]] = []
        self._regular: list[AnchoredRows] = []
        self._irregular: dict[int, list[tuple[TrackedBatch, int]]] = {}
        self._resolved = 0

    def resolve(self, current: TrackedBatch | None, rows: int | None = None) -> None:
        """Resolves the rows since the last call, up to `rows` of the buffer; `current` is the batch in work."""
        parents = self.parents if rows is None else self.parents[: rows - self._resolved]
        if not parents:
            return
        count = len(parents)
        start = self._resolved
        self._resolved += count
        try:
            places = [parent._index for parent in parents if parent.id is None]  # type: ignore[union-attr]
        except AttributeError:  # an emit with several anchors, or with an empty list
            places = []
        if len(places) != count:
            self._resolve_slowly(parents, start, current)
        elif current is not None and max(places) >= 0:
            if current.acks_sent:
                places = [place if place >= 0 and current.takes_children(place) else -1 for place in places]
            self._regular.append(AnchoredRows(start, current, places))
        del self.parents[:count]

    def add(self, anchored: list[AnchoredRows], rows: int) -> None:
        """Adds rows whose anchors are resolved, behind those that `resolve` was called for."""
        self._regular += anchored
        self._resolved += rows

    def take(self) -> tuple[list[AnchoredRows], dict[int, list[tuple[TrackedBatch, int]]]]:
        """The rows resolved since the last flush: those with one anchor, by batch, and those with several."""
        taken = self._regular, self._irregular
        self._regular, self._irregular, self._resolved = [], {}, 0
        return taken

    def _resolve_slowly(
        self, parents: list[Tuple | tuple[Tuple, ...]], start: int, current: TrackedBatch | None
    ) -> None:
        for row, parent in enumerate(parents, start):
            tuples = parent if isinstance(parent, tuple) else (parent,)
            places = []
            for tup in dict.fromkeys(tuples):
                batch = current if tup.id is None else tup.id
                if isinstance(batch, TrackedBatch) and tup._index >= 0 and batch.takes_children(tup._index):
                    places.append((batch, 0 if batch.is_unit else tup._index))
            if len(places) > 1:
                self._irregular[row] = list(dict.fromkeys(places))  # tuples of a unit are one row
            elif places:
                self._add(row, *places[0])

    def _add(self, row: int, batch: TrackedBatch, place: int) -> None:
        """Adds a row with one anchor; components that emit later have many of a batch in a row."""
        last = self._regular[-1] if self._regular else None
        if last is not None and last.batch is batch and last.start + len(last.places) == row:
            last.places.append(place)
        else:
            self._regular.append(AnchoredRows(row, batch, [place]))


def _most_derived(tasks: Sequence[int]) -> int:
    """The most rows of the short form of ROOTS."""
    return min(MAX_DERIVED_ROWS, MAX_DERIVED_KEYS // max(1, len(tasks)))


def _reported_later(_row: object, _error: Exception) -> None:
    """A row that cannot be encoded is seen again by `flush_arrays`, which reports it."""


class _FlushArrays(Protocol):
    """`heron.instance.output.flush_arrays.FlushArrays`, which imports this module."""

    def root_segments(
        self, stream: RootStream, rows: list[object], base: int, with_id: list[int] | None
    ) -> list[bytes]: ...

    def anchored_segments(
        self,
        stream: AnchoredStream,
        rows: list[object],
        regular: list[AnchoredRows],
        irregular: dict[int, list[tuple[TrackedBatch, int]]],
    ) -> list[bytes]: ...

    def anchored_options(self, stream: AnchoredStream, rows: int, anchored: list[AnchoredRows]) -> bytes | None: ...

    def anchored_columns(
        self, stream: AnchoredStream, columns: ColumnOutput, parts: Sequence[ColumnPart], rows: int, parents: Parents
    ) -> list[bytes]: ...


@functools.cache
def _flush_arrays() -> _FlushArrays:
    """The segments that need arrays; the first call imports numpy.

    A task whose batches go to one destination never calls it, and saves numpy's memory and import.
    """
    made = load_object("heron.instance.output.flush_arrays:FlushArrays", "ack tracking")
    return cast("type[_FlushArrays]", made)()
