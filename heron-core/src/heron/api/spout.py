"""Sources of a topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from heron.api.collector import SpoutCollector, UnboundCollector
from heron.api.component import BaseComponent
from heron.api.component_spec import HeronComponentSpec
from heron.api.context import TopologyContext
from heron.api.stream import Stream

__all__ = ["BaseSpout", "Spout"]


class BaseSpout(BaseComponent):
    """How a spout is described and how it emits; authors derive from `Spout`."""

    outputs: ClassVar[Sequence[str | Stream]] = ()
    _collector: SpoutCollector = UnboundCollector()

    def __init__(self, delegate: SpoutCollector | None = None) -> None:
        super().__init__(delegate)
        if delegate is not None:
            self._collector = delegate

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
    ) -> HeronComponentSpec:
        """This spout as a part of a topology: its name, number of tasks, own configuration and further
        outputs.

        In the body of a `Topology` class the name defaults to the attribute's.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        return HeronComponentSpec.of_class(cls, name, True, par, None, optional_outputs, config)

    def emit(
        self,
        tup: Sequence[object],
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple.

        Args:
            tup: the values, one per declared field of the stream; copied before this returns.
            tup_id: given back to `ack` or `fail` once the tuple's tree is complete; None when nobody asks.
            stream: a declared output stream.
            direct_task: the receiving task, where a consumer subscribes with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the tasks that receive the tuple.

        Returns:
            The receiving tasks' ids, or None unless asked for.

        Raises:
            EmitError: when the stream or task is unknown, or the number of values is wrong.
        """
        return self._collector.emit(tup, tup_id, stream, direct_task, need_task_ids)


class Spout(BaseSpout):
    """A source of tuples. Declare the fields in `outputs`, emit in `next_tuple`.

    Every method is called from one thread, one at a time.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once before anything else, with the configuration of topology and component merged."""

    def close(self) -> None:
        """Called at an orderly stop; a killed process does not get here."""

    def next_tuple(self) -> None:
        """Emits the next tuple or a few, or none when there is nothing now. Must not block for long: acks
        wait.
        """

    def ack(self, tup_id: object) -> None:
        """The tree of the tuple that was emitted with this id is complete."""

    def fail(self, tup_id: object) -> None:
        """The tree of the tuple that was emitted with this id failed or timed out; emit it again if it
        matters.
        """

    def activate(self) -> None:
        """The topology resumes after a pause."""

    def deactivate(self) -> None:
        """The topology pauses, or is paused when this task begins; `next_tuple` is not called until `activate`."""

    def end(self) -> None:
        """Says that this task will make no new tuple; when every spout task has said so, the topology
        finishes.

        May be called again, without effect. Tuples whose ids fail may still be emitted again afterwards, and
        `next_tuple` is still called for it.

        Raises:
            EmitError: when no engine runs this component.
        """
        self._collector.end()
