"""The sinks of a view: one for live spans, one for the batch over history."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from heron.clock import Clock, SystemClock
from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.store import Batch, SpanKey, ViewStore
from heron_driver_kit.view_names import check_key
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.views.key_bytes import key_bytes
from heron_streamlet.views.view import View

__all__ = ["HistorySink", "LiveSink", "ViewSink"]

_CHECKPOINT_BITS = 32
_CHANGED_AT_MOST = 100_000
"""Values in memory that wait for a checkpoint; more are staged early."""

Element = tuple[tuple[int, object], Any]
"""``((start of the span, key), accumulator)``"""


class ViewSink(TransactionalSink[Element]):
    """Writes a view. The pipeline's side, live or history, chooses the class (`heron_streamlet.views.sides`)."""

    clock: Clock = SystemClock()

    def __init__(self, view: View[Any, Any], ref: DriverRef) -> None:
        self.view = view
        self._ref = ref

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        self.store = open_driver(self._ref, ViewStore)
        self.task, self.tasks = context.partition, context.partitions

    def close(self) -> None:
        """`Sink.close`."""
        self.store.close()

    @abstractmethod
    def put(self, element: Element) -> None:
        """`Sink.put`."""


class LiveSink(ViewSink):
    """Keeps the values that have changed since the last checkpoint, and writes each of them once.

    Versions in the store are an epoch and a checkpoint in it: checkpoints of a new submission are counted from 1 again.
    """

    def __init__(self, view: View[Any, Any], ref: DriverRef, epoch: int = 0) -> None:
        super().__init__(view, ref)
        self._epoch = epoch << _CHECKPOINT_BITS

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        super().setup(context)
        self._changed: dict[tuple[int, object], Any] = {}
        self._prepared = 0

    def put(self, element: Element) -> None:
        """`Sink.put`."""
        if element[0] not in self._changed:
            check_key(self.view.name, key_bytes(element[0][1]))  # it fails alone here; later it would fail a checkpoint
        self._changed[element[0]] = element[1]
        if len(self._changed) >= _CHANGED_AT_MOST:
            self._stage(self._prepared + 1)  # the next checkpoint has this number or a greater one

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`."""
        self._stage(checkpoint)
        self._prepared = checkpoint

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`."""
        version = self._epoch + checkpoint
        self.store.publish(self.view.name, self.task, version, round(self.clock.wall_s() * 1_000_000))
        if self.task == 0:  # an update may have removed writers, the last of which publish when they end
            self.store.retire(self.view.name, self.tasks, version)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`."""
        self._changed.clear()
        self._prepared = checkpoint
        if checkpoint:
            self.commit(checkpoint)
        # Without a checkpoint this discards what an earlier submission had staged as well.
        self.store.discard(self.view.name, self.task, self._epoch + checkpoint if checkpoint else 0)

    def _stage(self, checkpoint: int) -> None:
        if self._changed:
            values: dict[SpanKey, bytes] = {
                (start_us, key_bytes(key)): self.view.encode(accumulator)
                for (start_us, key), accumulator in self._changed.items()
            }
            self.store.stage(self.view.name, self.task, self._epoch + checkpoint, values)
            self._changed.clear()


class HistorySink(ViewSink):
    """Merges the spans of each key, and writes them as one batch."""

    def __init__(self, view: View[Any, Any], ref: DriverRef, batch: Batch) -> None:
        super().__init__(view, ref)
        self._batch = batch

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        super().setup(context)
        self._values: dict[object, Any] = {}

    def put(self, element: Element) -> None:
        """`Sink.put`."""
        (_, key), accumulator = element
        if key in self._values:
            accumulator = self.view.monoid.merge(self._values[key], accumulator)
        else:
            check_key(self.view.name, key_bytes(key))  # it fails alone here; later it would fail the batch
        self._values[key] = accumulator

    def prepare(self, checkpoint: int) -> None:  # a batch has one
        """`TransactionalSink.prepare`."""
        values = {key_bytes(key): self.view.encode(accumulator) for key, accumulator in self._values.items()}
        self.store.stage_batch(self.view.name, self._batch, self.task, values)

    def commit(self, checkpoint: int) -> None:  # a batch has one
        """`TransactionalSink.commit`."""
        self.store.publish_batch(self.view.name, self._batch, self.task, self.tasks)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`."""
        if checkpoint:
            self.commit(checkpoint)
