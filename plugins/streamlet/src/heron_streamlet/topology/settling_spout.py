"""The spout of a source whose readers hear when elements are safe."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heron.api import ITwoPhaseStatefulComponent, TopologyContext
from heron_streamlet.connectors.sources import SettledReader
from heron_streamlet.topology.source_spout import OpenPartition, SourceSpout

__all__ = ["SettlingSourceSpout"]


@dataclass(eq=False, slots=True)
class _Call:
    """What calls of `next_tuple` have read: how many elements of each partition there are at its end, since the begin.

    `in_flight` are the rows that are not acked. `number` is the checkpoint that contains it, if there are checkpoints
    and no acks.
    """

    in_flight: int = 0
    ends: list[tuple[OpenPartition, int]] = field(default_factory=list)
    number: int = 0


class SettlingSourceSpout(SourceSpout, ITwoPhaseStatefulComponent):
    """Tells each reader which elements are safe, in the order in which they were read.

    Elements are safe with all elements before them, so one row that is emitted again holds the later ones back.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """`SourceSpout.initialize`."""
        super().initialize(config, context)
        self.call = _Call()
        self.calls: deque[_Call] = deque()
        self.ended = 0  # elements in `calls` and before
        self.waits_for_checkpoint = self.host.saves and not self.host.tracked

    def next_tuple(self) -> None:
        """`SourceSpout.next_tuple`."""
        try:
            super().next_tuple()
        finally:
            if not self.waits_for_checkpoint:
                self._end_call(0)
                self._settle()

    def send(self, values: tuple[Any, ...], stream: str) -> None:
        """`SourceSpout.send`."""
        self.next_id += 1
        tup_id = (self.next_id, self.call)
        self.call.in_flight += 1
        self.in_flight[tup_id] = values, stream  # type: ignore[index]  # ids of this class
        self.emit(values, tup_id=tup_id, stream=stream)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # as in the base class
        """`SourceSpout.ack`."""
        if self.in_flight.pop(tup_id, None) is not None:
            call: _Call = tup_id[1]
            call.in_flight -= 1
            if not call.in_flight:
                self._settle()

    def pre_save(self, checkpoint_id: str) -> None:
        """`SourceSpout.pre_save`."""
        super().pre_save(checkpoint_id)
        if self.waits_for_checkpoint:
            self._end_call(int(checkpoint_id))

    def post_save(self, checkpoint_id: str) -> None:
        """What the checkpoint contains is safe."""
        if self.waits_for_checkpoint:
            self._settle(int(checkpoint_id))

    def pre_restore(self, checkpoint_id: str) -> None:
        """The positions say where reading goes on; nothing is written elsewhere."""

    def _end_call(self, number: int) -> None:
        """What was read until now is a unit, if anything was."""
        processed = sum(each.processed for each in self.partitions)
        if processed > self.ended:
            self.ended = processed
            self.call.ends = [(each, each.processed) for each in self.partitions]
            self.call.number = number
            self.calls.append(self.call)
            self.call = _Call()

    def _settle(self, complete: int = 0) -> None:
        """Tells the readers of the units that are safe, from the oldest."""
        last: _Call | None = None
        while self.calls and not self.calls[0].in_flight and self.calls[0].number <= complete:
            last = self.calls.popleft()
        if last is not None:
            for partition, processed in last.ends:
                reader: SettledReader[Any] = partition.reader  # type: ignore[assignment]  # its source says so
                reader.settled(processed)
