"""The calls of `process` and `process_columns` for the rows of a received batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from heron.api.bolt import Bolt
from heron.api.plain_batch import PlainBatch
from heron.api.plain_components import PlainBolt
from heron.api.tuple import Tuple
from heron.author_text import Described
from heron.clock import monotonic_s
from heron.instance.acks.tracked_batch import UNTRACKED, TrackedBatch
from heron.instance.bolt_output import BoltOutput
from heron.instance.input.ack_trust import AckTrust
from heron.instance.input.batch_reader import ReceivedBatch
from heron.instance.input.key_sample import KeySample
from heron.instance.input.received_traces import ReceivedTraces
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.input.undecodable_rows import UndecodableRow, report_undecodable
from heron.instance.output.emitter import BoltEmitter
from heron.instance.pacing import SliceSize
from heron.instance.task import Task
from heron.instance.user.failure_places import FailurePlace

if TYPE_CHECKING:  # topologies without columns need not import them
    from pyarrow import RecordBatch

    from heron.instance.input.column_input import ReceivedColumns

__all__ = ["BatchProcessor"]

_NO_TUPLE = Tuple()


class BatchProcessor:
    """Calls a bolt for one batch after the other: rows in slices of a few milliseconds, columns in one call.

    `between_slices` gets the time after a slice that was long, or that is not the last one of its batch. `failed` is
    `heron.instance.runner.ComponentRunner.user_failed`.
    """

    def __init__(
        self,
        task: Task,
        emitter: BoltEmitter,
        output: BoltOutput,
        trust: AckTrust,
        between_slices: Callable[[float], None],
        failed: Callable[[str, BaseException, str, object, FailurePlace], None],
    ) -> None:
        self._task = task
        self._emitter = emitter
        self._output = output
        self._trust = trust
        self._between_slices = between_slices
        self._failed = failed
        self._places = task.errors.places
        self._slice = SliceSize()
        self._keys = task.metrics.keys = KeySample.of(task.index, task.spec.component)

    def wants_values(self, batch: ReceivedBatch) -> bool:
        """Whether the values of a batch are needed here, also where the bolt takes it undecoded."""
        return self._keys is not None and self._keys.wants(batch)

    def process_rows(
        self, component: Bolt, batch: ReceivedBatch, tracked: TrackedBatch | None, traces: ReceivedTraces | None
    ) -> None:
        """Calls `process` for each row."""
        acks, pool, metrics = self._output.acks, batch.source.pool, self._task.metrics
        tuples = pool.take(batch.rows)
        acks.begin(tracked, tuples, self._report_undecodable(batch.undecodable))
        if self._keys is not None:
            self._keys.look(batch)
        self._output.begin_batch()
        self._process_in_slices(component, batch, tuples, traces)
        self._trust.note(metrics.acked + metrics.failed)
        acks.end(tracked)  # before `recycle`, because acks that are not settled hold their tuples
        self._output.flush_acks()
        pool.recycle(batch.rows, tracked or UNTRACKED)

    def process_plain(self, component: PlainBolt, batch: ReceivedBatch, given: PlainBatch) -> None:
        """Calls `process_plain` once for all rows."""
        acks, key, metrics = self._output.acks, batch.source.key, self._task.metrics
        if self._keys is not None:
            self._keys.look(batch)
        self._output.begin_batch()
        start_s = monotonic_s()
        try:
            with self._emitter.lock.released():
                component.process_plain(given)
        except BaseException as error:
            at = self._places.of("process_plain", error, by_caller=True)
            acks.blame(given, "process_plain", error, at)
            acks.settle_rows(given, range(batch.rows), acked=False)
            remedy = "the rows that are not settled are failed, and the task continues"
            self._failed("process_plain", error, remedy, Described(f"a batch of {batch.rows} rows"), at)
        end_s = monotonic_s()
        metrics.executed[key] = metrics.executed.get(key, 0) + batch.rows
        metrics.execute_latency.add((end_s - start_s) / batch.rows, batch.rows)
        self._between_slices(end_s)
        self._output.flush_acks()

    def process_columns(
        self, component: Bolt, received: ReceivedColumns, tracked: TrackedBatch | None, traces: ReceivedTraces | None
    ) -> None:
        """Calls `process_columns` once for all rows."""
        acks, batch, source, streams = (
            self._output.acks,
            received.batch,
            received.source,
            self._emitter.streams.values(),
        )
        acks.begin_columns(batch, tracked, self._report_undecodable(received.undecodable), source.key)
        self._output.begin_batch()
        component.received_from = received.received_from
        if traces is not None:
            traces.begin_all(streams)
        start_s = monotonic_s()
        try:
            with self._emitter.lock.released():
                if batch.num_rows:
                    self._call_process_columns(component, batch, source)
        except BaseException as error:
            at = self._places.of("process_columns", error, by_caller=True)
            acks.blame(batch, "process_columns", error, at)
            acks.settle_columns(batch, acked=False)
            remedy = "the batch is failed and the task continues"
            self._failed("process_columns", error, remedy, Described(received), at)
        if traces is not None:
            traces.end(streams)
        end_s, rows, metrics = monotonic_s(), batch.num_rows, self._task.metrics
        metrics.executed[source.key] = metrics.executed.get(source.key, 0) + rows
        metrics.executed_batches[source.key] = metrics.executed_batches.get(source.key, 0) + 1
        metrics.execute_latency.add((end_s - start_s) / max(1, rows), rows)
        self._between_slices(end_s)
        self._output.flush_acks()

    def _report_undecodable(self, undecodable: Sequence[UndecodableRow]) -> Sequence[UndecodableRow]:
        """Counts and reports rows that the component does not get."""
        self._task.metrics.failed += len(undecodable)
        report_undecodable(undecodable, self._task.errors)
        return undecodable

    def _process_in_slices(
        self, component: Bolt, batch: ReceivedBatch, tuples: list[Tuple], traces: ReceivedTraces | None
    ) -> None:
        """Reads the clock between two slices; see `SliceSize`."""
        rows, key, streams = batch.rows, batch.source.key, self._emitter.streams.values()
        executed, latency = self._task.metrics.executed, self._task.metrics.execute_latency
        pairs = zip(tuples, batch.values(), strict=False)
        done = 0
        while done < rows and not self._emitter.stop_requested():
            size = wanted = min(self._slice.tuples, rows - done)
            if traces is not None:
                size = traces.begin(done, wanted, streams)
            now = islice(pairs, size)
            start_s = monotonic_s()
            with self._emitter.lock.released():
                self._process_slice(component, batch.decoded(now, done) if batch.undecodable else now)
            took_s = monotonic_s() - start_s
            if traces is not None:
                traces.end(streams)
            executed[key] = executed.get(key, 0) + size - batch.undecodable_among(done, size)
            done += size
            latency.add(took_s / size, size)
            if self._slice.adapt(size, took_s, cut=size < wanted) or done < rows:
                self._between_slices(start_s + took_s)

    def _process_slice(self, component: Bolt, pairs: Iterator[tuple[Tuple, tuple[object, ...]]]) -> None:
        process: Callable[[Tuple], object] = component.process
        if (calls := self._emitter.hook_calls) is not None:
            process = partial(calls.execute, process)
        while True:
            tup: Tuple = _NO_TUPLE
            try:
                for tup, tup.values in pairs:  # assigns the object, then its slot
                    process(tup)
                return
            except BaseException as error:
                self._emitter.failed.append(tup)
                at = self._places.of("process", error, by_caller=True)
                self._output.acks.blame(tup, "process", error, at)
                if not at.counts():
                    self._failed("process", error, "the tuple is failed and the task continues", tup, at)

    def _call_process_columns(self, component: Bolt, batch: RecordBatch, source: TupleSource) -> None:
        if (calls := self._emitter.hook_calls) is None:
            component.process_columns(batch)
        else:
            tup = Tuple.source(*source.key, source.task_id)(None, (batch,), 0)
            calls.execute(lambda _: component.process_columns(batch), tup)
