"""The loop of a bolt task in a topology in which a spout sheds tuples: tuples have weights, and so has what it emits.

What `process` emits has the weight of the received tuple. What other methods and the author's threads emit has the
weight 1. Other topologies have `BoltRunner` and pay nothing.
"""

from __future__ import annotations

from functools import partial

from heron.api.bolt import Bolt
from heron.driver_kit.signals import Signals
from heron.errors import RemoteProtocolError
from heron.instance.bolt_runner import BoltRunner
from heron.instance.input.watermarks import WatermarkStep
from heron.instance.input.weighted_reader import WeightedReader
from heron.instance.task import Task
from heron.ipc.frames.frame import SegmentHead, kept_probability

__all__ = ["SampledBoltRunner"]


class SampledBoltRunner(BoltRunner):
    """Runs a bolt that may receive weights."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        super().__init__(task, signals, component_class)
        self._reader = self._weights = WeightedReader(task.index, task.serializers)

    def _process_tuples(self, frame: bytes, head: SegmentHead) -> None:
        try:
            probability = kept_probability(head)
        except RemoteProtocolError:
            acks = self._output.acks
            acks.refuse(acks.batch_of(head))
            raise
        self._weights.weight = self._component.received_weight = 1.0 / probability
        self._bolt_emitter.set_probability(probability)
        super()._process_tuples(frame, head)

    def _tick_if_due(self) -> None:
        if self.ended or not self._ticks.is_due():
            return
        before = self.emitter.probability
        self._bolt_emitter.set_probability(1.0)
        super()._tick_if_due()
        self._bolt_emitter.set_probability(before)  # the tick may be between two slices of a batch

    def _advance_watermark(self, step: WatermarkStep | None) -> None:
        if step is not None:
            self._bolt_emitter.set_probability(1.0)
        super()._advance_watermark(step)

    def _call_finish(self) -> None:
        self._bolt_emitter.set_probability(1.0)
        super()._call_finish()

    def _construct(self) -> None:
        super()._construct()
        self.task.queued_target.emit = partial(self._emit_queued, self._component)

    def _emit_queued(self, bolt: Bolt, /, *arguments: object, **named: object) -> object:
        """An emit of a thread of the author."""
        self._bolt_emitter.set_probability(1.0)
        return bolt.emit(*arguments, **named)  # type: ignore[arg-type]  # as the thread has called it
