"""The acks and fails of a bolt: which received tuples are settled.

An ack reports the XOR of the tuple's key and of all keys emitted under the tuple. Those keys are known only when the
emitted rows are flushed. Acks therefore wait for the next flush and leave directly behind it. The classes here belong
to the task thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Protocol, cast

from heron.api.definition import StreamDefinition
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple
from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron.instance.acks.foreign_tuples import foreign_tuple, only_tuples
from heron.instance.acks.tracked_batch import UNTRACKED, AckedRows, TrackedBatch, tracked_batch
from heron.instance.input.received_batches import ReceivedBatches
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.output.tracked_stream import AnchoredStream, anchor_tuples
from heron.ipc.frames.frame import SegmentHead
from heron.ipc.frames.tracking import ack_range

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.instance.acks.batch_arrays import BatchAcks
    from heron.instance.acks.failed_rows import FailedRows
    from heron.instance.input.undecodable_rows import UndecodableRow
    from heron.instance.user.failure_places import FailurePlace

__all__ = ["AckOutput", "AckTracker", "BoltAcks", "TrackedBoltAcks"]


class AckOutput(Protocol):
    """The destination of acks: the data-out queue."""

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """Appends ack and fail segments; never blocks."""
        ...


class AckTracker:
    """The tuples settled since the last flush. `in_work` is the batch whose tuples are passed to `process` now."""

    def __init__(self, out: AckOutput, failed_rows: FailedRows | None = None) -> None:
        """`failed_rows` has why rows fail, if a spout wants to know."""
        self._out = out
        self.failed_rows = failed_rows
        self._acked: list[AckedRows] = []
        self._failed: list[tuple[TrackedBatch, list[int]]] = []
        self._received = ReceivedBatches[object]()
        self.in_work: TrackedBatch | None = None
        self.corrections: list[bytes] = []
        self.waiting = 0
        self.ignored = 0
        self.wrong: list[UsageError] = []

    def settle(self, acked: list[Tuple], failed: list[Tuple], pool: list[Tuple]) -> None:
        """Takes the tuples that the component acked and failed since the last call, and empties both lists.

        The first ack or fail of a tuple counts. If one call brings both, the fail counts: their order is not known, and
        only an ack can lose the tuple. All others are counted in `ignored`, and so are acks of ticks. Objects that are
        not tuples are named in `wrong`.
        """
        try:
            self._settle(acked, failed, pool)
        except Exception:
            self.wrong += only_tuples(failed, "fail") + only_tuples(acked, "ack")
            if not self.wrong:
                raise
            self._settle(acked, failed, pool)

    def _settle(self, acked: list[Tuple], failed: list[Tuple], pool: list[Tuple]) -> None:
        batch = self.in_work
        untouched = batch is not None and batch.untouched()
        places: list[int] = []  # that failed in the batch in work
        if failed:
            for each, fresh in self._by_batch(failed, pool):
                self._failed.append((each, each.rows_failed(fresh)))
                places = fresh if each is batch else places
            self.waiting += len(failed)
            failed.clear()
        if acked:
            if batch is not None and untouched and _are_all_but(acked, places, batch, pool):
                batch.settle_all()
                self._acked.append(AckedRows(batch, failed=places))
            else:
                settled = [(each, each.rows_acked(fresh)) for each, fresh in self._by_batch(acked, pool)]
                self._acked += [AckedRows(each, rows) for each, rows in settled if rows]
            self.waiting += len(acked)
            acked.clear()

    def ack_whole(self, batch: TrackedBatch) -> None:
        """Acks all tuples of a batch that are not settled."""
        if batch.untouched():
            self.waiting += batch.tuples
            batch.settle_all()
            self._acked.append(AckedRows(batch))
        elif rows := batch.rows_acked(self._unsettled(batch)):
            self._acked.append(AckedRows(batch, rows))

    def fail_whole(self, batch: TrackedBatch) -> None:
        """Fails all tuples of a batch that are not settled."""
        if rows := batch.rows_failed(self._unsettled(batch)):
            self._failed.append((batch, rows))

    def fail_places(self, batch: TrackedBatch, places: list[int]) -> None:
        """Fails these tuples of a batch."""
        self.waiting += len(places)
        self._failed.append((batch, batch.rows_failed(batch.settle(places))))

    def settle_places(self, batch: TrackedBatch, places: Sequence[int], *, acked: bool) -> None:
        """Acks or fails the tuples at these places."""
        if acked and len(places) == batch.tuples and batch.untouched():
            self.ack_whole(batch)
            return
        fresh = batch.settle(list(places))
        self.waiting += len(fresh)
        self.ignored += len(places) - len(fresh)
        if rows := (batch.rows_acked if acked else batch.rows_failed)(fresh):
            if acked:
                self._acked.append(AckedRows(batch, rows))
            else:
                self._failed.append((batch, rows))

    def follow(self, record_batch: RecordBatch, batch: TrackedBatch | None) -> None:
        """The component gets a record batch with the rows of a batch."""
        self._received.add(record_batch, batch or UNTRACKED)

    def received(self, batch: object) -> object:
        """`AnchorHost.received`."""
        return self._received.get(batch)

    def _unsettled(self, batch: TrackedBatch) -> list[int]:
        fresh = batch.settle(list(range(batch.tuples)))
        self.waiting += len(fresh)
        self.ignored += batch.tuples - len(fresh)
        return fresh

    def flush(self) -> None:
        """Sends the settled tuples; called directly after the flush of what was emitted."""
        self.waiting = 0
        segments, self.corrections = self.corrections, []
        why = None if self.failed_rows is None else self.failed_rows.take(self._failed)  # also errors of what was acked
        if self._failed:  # in front of the acks, so that the outcomes of the others leave the stream manager as ranges
            segments += _batch_acks().fail_segments(self._failed, why)
        others: list[AckedRows] = []
        for each in self._acked:
            batch = each.batch
            if each.places is None and batch.root_base is not None and batch.is_range():
                failed = len(each.failed)
                segments.append(ack_range(batch.root_base, batch.batch_key, batch.task_id, batch.rows, failed))
            else:
                others.append(each)
            batch.note_acks_sent(each.places, each.failed)
        if others:
            segments += _batch_acks().ack_segments(others)
        self._acked.clear()
        self._failed.clear()
        if segments:
            self._out.put_acks(segments)

    def _by_batch(self, tuples: list[Tuple], pool: list[Tuple]) -> list[tuple[TrackedBatch, list[int]]]:
        if (in_work := self.in_work) is not None:
            of_work = [tup._index for tup in tuples if tup.id is None]
            if len(of_work) == len(tuples) and _are_at(of_work, tuples, pool, in_work.tuples):  # the usual case
                fresh = in_work.settle(of_work)
                self.ignored += len(of_work) - len(fresh)
                return [(in_work, fresh)] if fresh else []
        places: dict[int, tuple[TrackedBatch, list[int]]] = {}
        before, of_batch = None, list[int]()  # most tuples are of the same batch as the one before
        current = self.in_work
        for tup in tuples:
            batch, place = tup.id, tup._index
            if batch is None and current is not None and 0 <= place < current.tuples and pool[place] is tup:
                batch = current
            if isinstance(batch, TrackedBatch) and place >= 0:  # the place of a copy is -1
                if batch is not before:
                    before, of_batch = batch, places.setdefault(id(batch), (batch, []))[1]
                of_batch.append(place)
            else:
                self.ignored += 1
                if place < 0 and not self.wrong and (wrong := foreign_tuple("ack or fail", tup)) is not None:
                    self.wrong.append(wrong)
        settled = []
        for batch, of_batch in places.values():
            fresh = batch.settle(of_batch)
            self.ignored += len(of_batch) - len(fresh)
            if fresh:
                settled.append((batch, fresh))
        return settled


def _are_at(places: list[int], tuples: list[Tuple], pool: list[Tuple], most: int) -> bool:
    """Whether these tuples are at these places of the pool, among the first `most`."""
    inside = min(places) >= 0 and max(places) < most
    return inside and all(map(is_, map(pool.__getitem__, places), tuples))


def _are_all_but(acked: list[Tuple], failed: list[int], batch: TrackedBatch, pool: list[Tuple]) -> bool:
    """Whether these are all tuples of a batch but the failed ones, in their order."""
    if len(acked) + len(failed) != batch.tuples or (failed and batch.is_unit):
        return False
    rest = pool[: batch.tuples]
    for place in sorted(failed, reverse=True):
        del rest[place]
    return acked == rest


class BoltAcks:
    """The acks and fails of a bolt at most once: they are counted, and nothing is sent.

    `takes_plain`: the rows of a batch that is not decoded can fail.
    """

    takes_plain = True

    def __init__(self, emitter: BoltEmitter, metrics: TaskMetrics) -> None:
        self._emitter = emitter
        self._metrics = metrics
        self.on_wrong: Callable[[UsageError], object] = emitter.on_error

    @property
    def waiting(self) -> int:
        """Acks and fails that wait for a flush."""
        return 0

    def make_stream(
        self, number: int, stream: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> OutStream:
        """Makes an output stream of the bolt."""
        return OutStream(number, stream, routes, origin)

    def batch_of(self, head: SegmentHead) -> TrackedBatch | None:
        """The tracked batch of a segment; None if the segment is not tracked.

        Raises:
            RemoteProtocolError: when its tracking options are garbled.
        """
        return None

    def begin(
        self, batch: TrackedBatch | None, tuples: list[Tuple], undecodable: Sequence[UndecodableRow] = ()
    ) -> None:
        """Work on a batch begins; `tuples` are pooled objects for its rows, `undecodable` the rows that fail now."""

    def end(self, batch: TrackedBatch | None) -> None:
        """Work on a batch is over; its pooled tuples are reused after this."""
        self.settle()

    def begin_columns(
        self,
        record_batch: RecordBatch,
        batch: TrackedBatch | None,
        undecodable: Sequence[UndecodableRow],
        source: tuple[str, str] = ("", ""),
    ) -> None:
        """Work on a batch of columns of a source begins; `undecodable` are the rows that it lacks."""

    def settle_columns(self, record_batch: RecordBatch, *, acked: bool) -> None:
        """The component acked or failed a record batch."""
        if acked:
            self._metrics.acked += record_batch.num_rows
        else:
            self._metrics.failed += record_batch.num_rows

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """The component acked or failed rows of a batch that is not decoded."""
        if acked:
            self._metrics.acked += len(places)
        else:
            self._metrics.failed += len(places)

    def refuse(self, batch: TrackedBatch | None) -> None:
        """Fails a batch that cannot be read."""

    def blame(
        self, failed: Tuple | PlainBatch | RecordBatch, doing: str, error: BaseException, at: FailurePlace
    ) -> None:
        """The component raised `error` for a tuple or batch, which is failed; `at` is the place of `error`."""

    def discard(self, batch: TrackedBatch | None) -> None:
        """Acks a batch that is not processed, since its roots would else be emitted again forever."""

    def settle(self) -> None:
        """Takes the tuples that the component acked and failed since the last call."""
        emitter, metrics = self._emitter, self._metrics
        metrics.acked += len(emitter.acked)
        metrics.failed += len(emitter.failed)
        emitter.acked.clear()
        emitter.failed.clear()
        if emitter.wrong:
            metrics.ignored_acks += len(emitter.wrong)
            self._report_wrong(emitter.wrong)

    def _report_wrong(self, wrong: list[UsageError]) -> None:
        errors, wrong[:] = list(wrong), []
        for error in errors:
            self.on_wrong(error)

    def check_anchors(self, anchors: object) -> None:
        """Checks the anchors of an emit that joins no tree.

        Raises:
            EmitError: when they are not received tuples and batches.
        """

    def flush(self) -> None:
        """Sends the acks; called directly after the flush of what was emitted."""


class TrackedBoltAcks(BoltAcks):
    """The acks and fails of a bolt at least once."""

    def __init__(
        self,
        emitter: BoltEmitter,
        metrics: TaskMetrics,
        out: AckOutput,
        task_id: int,
        failed_rows: FailedRows | None = None,
    ) -> None:
        super().__init__(emitter, metrics)
        self._tracker = AckTracker(out, failed_rows)
        self._task_id = task_id
        self._tuples: list[Tuple] = []

    @property
    def waiting(self) -> int:
        """`BoltAcks.waiting`."""
        return self._tracker.waiting

    def make_stream(
        self, number: int, stream: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> OutStream:
        """`BoltAcks.make_stream`."""
        return AnchoredStream(number, stream, routes, origin, self._tracker)

    def batch_of(self, head: SegmentHead) -> TrackedBatch | None:
        """`BoltAcks.batch_of`."""
        return tracked_batch(head, self._task_id)

    def begin(
        self, batch: TrackedBatch | None, tuples: list[Tuple], undecodable: Sequence[UndecodableRow] = ()
    ) -> None:
        """`BoltAcks.begin`."""
        self._tuples = tuples
        self._tracker.in_work = batch
        self._fail_undecodable(batch, undecodable)

    def end(self, batch: TrackedBatch | None) -> None:
        """`BoltAcks.end`."""
        self.settle()
        self._emitter.resolve_anchors(batch)
        self._tracker.in_work = None

    def begin_columns(
        self,
        record_batch: RecordBatch,
        batch: TrackedBatch | None,
        undecodable: Sequence[UndecodableRow],
        source: tuple[str, str] = ("", ""),
    ) -> None:
        """`BoltAcks.begin_columns`."""
        self._tracker.follow(record_batch, batch)
        self._fail_undecodable(batch, undecodable)

    def _fail_undecodable(self, batch: TrackedBatch | None, undecodable: Sequence[UndecodableRow]) -> None:
        if batch is not None and undecodable:
            self._tracker.fail_places(batch, [each.place for each in undecodable])
            if self._tracker.failed_rows is not None:
                for each in undecodable:
                    at = self._tracker.failed_rows.places.of(each.doing, each.reason)
                    self._tracker.failed_rows.blame(batch, each.place, each.doing, each.reason, at)

    def settle_columns(self, record_batch: RecordBatch, *, acked: bool) -> None:
        """`BoltAcks.settle_columns`."""
        super().settle_columns(record_batch, acked=acked)
        batch = self._tracker.received(record_batch)
        if isinstance(batch, TrackedBatch):
            (self._tracker.ack_whole if acked else self._tracker.fail_whole)(batch)
        elif batch is None:  # a slice, or a copy
            self._tracker.ignored += record_batch.num_rows
        self._metrics.ignored_acks = self._tracker.ignored

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """`BoltAcks.settle_rows`; rows that are settled already count as ignored only."""
        if isinstance(batch.id, TrackedBatch):
            ignored = self._tracker.ignored
            self._tracker.settle_places(batch.id, places, acked=acked)
            places = places[self._tracker.ignored - ignored :]  # as many as were settled now
            self._metrics.ignored_acks = self._tracker.ignored
        super().settle_rows(batch, places, acked=acked)

    def refuse(self, batch: TrackedBatch | None) -> None:
        """`BoltAcks.refuse`."""
        if batch is not None:
            self._tracker.fail_whole(batch)

    def blame(
        self, failed: Tuple | PlainBatch | RecordBatch, doing: str, error: BaseException, at: FailurePlace
    ) -> None:
        """`BoltAcks.blame`."""
        if (failed_rows := self._tracker.failed_rows) is None:
            return
        if isinstance(failed, Tuple):
            batch = failed.id or self._tracker.in_work
            if isinstance(batch, TrackedBatch):
                failed_rows.blame(batch, failed._index, doing, error, at)
            return
        batch = failed.id if isinstance(failed, PlainBatch) else self._tracker.received(failed)
        if isinstance(batch, TrackedBatch):
            failed_rows.blame_all(batch, doing, error, at)

    def discard(self, batch: TrackedBatch | None) -> None:
        """`BoltAcks.discard`."""
        if batch is not None:
            self._tracker.ack_whole(batch)
            self._tracker.flush()

    def settle(self) -> None:
        """`BoltAcks.settle`."""
        emitter, metrics = self._emitter, self._metrics
        metrics.acked += len(emitter.acked)
        metrics.failed += len(emitter.failed)
        self._tracker.settle(emitter.acked, emitter.failed, self._tuples)
        self._tracker.ignored += len(emitter.wrong)
        metrics.ignored_acks = self._tracker.ignored
        if emitter.wrong or self._tracker.wrong:
            self._report_wrong(emitter.wrong)
            self._report_wrong(self._tracker.wrong)

    def check_anchors(self, anchors: object) -> None:
        """`BoltAcks.check_anchors`."""
        anchor_tuples(self._tracker, anchors)

    def flush(self) -> None:
        """`BoltAcks.flush`."""
        self._tracker.flush()


@functools.cache
def _batch_acks() -> BatchAcks:
    """The acks of single tuples; the first call imports numpy. A task whose batches are acked whole never calls it."""
    return cast("type[BatchAcks]", load_object("heron.instance.acks.batch_arrays:BatchAcks", "acks of single tuples"))()
