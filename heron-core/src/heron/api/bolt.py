"""Steps of a topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from heron.api.collector import BoltCollector, UnboundCollector
from heron.api.component import BaseComponent
from heron.api.component_spec import HeronComponentSpec, Inputs
from heron.api.context import TopologyContext
from heron.api.stream import Stream
from heron.api.tuple import Tuple, TupleHelper

__all__ = ["BaseBolt", "Bolt"]


class BaseBolt(BaseComponent):
    """How a bolt is described and how it emits and acks; authors derive from `Bolt`."""

    outputs: ClassVar[Sequence[str | Stream]] = ()
    _collector: BoltCollector = UnboundCollector()

    def __init__(self, delegate: BoltCollector | None = None) -> None:
        super().__init__(delegate)
        if delegate is not None:
            self._collector = delegate

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
    ) -> HeronComponentSpec:
        """This bolt as a part of a topology: its name, inputs, number of tasks, configuration and further
        outputs.

        `inputs` is ``{spec or spec["stream"]: grouping}``, or a list of these (shuffle grouping). In the body
        of a `Topology` class the name defaults to the attribute's.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        return HeronComponentSpec.of_class(cls, name, False, par, inputs, optional_outputs, config)

    def emit(
        self,
        tup: Sequence[object],
        stream: str = "default",
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple.

        Args:
            tup: the values, one per declared field of the stream; copied before this returns.
            stream: a declared output stream.
            anchors: the received tuples that this one stems from; they are complete only when it is.
            direct_task: the receiving task, where a consumer subscribes with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the tasks that receive the tuple.

        Returns:
            The receiving tasks' ids, or None unless asked for.

        Raises:
            EmitError: when the stream or task is unknown, or the number of values is wrong.
        """
        return self._collector.emit(tup, stream, anchors, direct_task, need_task_ids)

    def ack(self, tup: Tuple) -> None:
        """This bolt is done with a tuple. Acking twice, or a tick tuple, is counted and harmless."""
        self._collector.ack(tup)

    def fail(self, tup: Tuple) -> None:
        """This tuple failed; its spout hears of it at once."""
        self._collector.fail(tup)

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Whether this is a tick tuple."""
        return tup.stream == TupleHelper.TICK_TUPLE_ID


class Bolt(BaseBolt):
    """A step that receives tuples and may emit others. Declare what it emits in `outputs`.

    Every method is called from one thread, one at a time.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once before anything else, with the configuration of topology and component merged."""

    def process(self, tup: Tuple) -> None:
        """Called for each tuple; with at-least-once delivery, ack or fail it here or later."""

    def process_tick(self, tup: Tuple) -> None:
        """Called every ``topology.tick.tuple.freq.secs``, a key of the component's configuration."""

    def finish(self) -> None:
        """Called when all that feeds this task has ended; what it emits still reaches the consumers.

        At least once, normally exactly once. A tuple left unacked until now would keep its spout from ending.
        """

    def close(self) -> None:
        """Called at an orderly stop; a killed process does not get here."""
