"""Spouts: the components that bring tuples into a topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from heron.api.columns import Columns
from heron.api.component import BaseComponent, SpoutCollector, UnboundCollector
from heron.api.component_spec import HeronComponentSpec
from heron.api.context import TopologyContext
from heron.api.stream import Stream

__all__ = ["BaseSpout", "Spout"]


class BaseSpout(BaseComponent):
    """The methods that a spout calls. Authors derive from `Spout`.

    Attributes:
        outputs: the declared outputs: field names of the default stream, and `Stream` objects. The attribute exists
            only in classes that set it, as in heronpy.
    """

    outputs: ClassVar[Sequence[str | Stream]]
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
        """Return this spout as a part of a topology.

        Args:
            name: the name of the component; None takes the name of the attribute in a `Topology` class.
            par: the number of tasks, at least 1.
            config: the component's own configuration; it has precedence over the topology's.
            optional_outputs: outputs in addition to those of the class.

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
        """Emit a tuple.

        Args:
            tup: the values, one for each declared field of the stream; copied before this method returns. A text is
                no sequence of values: emit ``[text]``.
            tup_id: the argument of `ack` or `fail` when the tree of the tuple is complete; None asks for neither.
            stream: the name of a declared output stream.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the receiving tasks.

        Returns:
            The ids of the receiving tasks, or None without `need_task_ids`.

        Raises:
            EmitError: when the stream or task is unknown, the number of values is wrong, or the spout has no collector.
        """
        return self._collector.emit(tup, tup_id, stream, direct_task, need_task_ids)

    def emit_columns(
        self,
        batch: Columns,
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        *,
        ids: Sequence[object] | None = None,
    ) -> None:
        """Emit the rows of a batch, in their order, as columns. The class must set ``columns = True``.

        Args:
            batch: a `pyarrow.RecordBatch` or Table, a data frame with Arrow's C interface (pandas, Polars), or a
                mapping of field names to arrays; one column for each declared field. It is copied or sent
                before this method returns.
            tup_id: the argument of `ack` or `fail` for the batch as a whole, which is one root; None asks for neither.
            stream: the name of a declared output stream.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.
            ids: one id for each row, instead of `tup_id`: each row is a root.

        Raises:
            EmitError: when the stream or task is unknown, the columns are not the declared fields, a type differs from
                the type of the same field in the task's first batch, a type cannot be a key where the stream is grouped
                by it, `ids` has another length or a None in it, or the spout has no collector.
        """
        self._collector.emit_columns(batch, tup_id, stream, direct_task, ids)

    def emit_watermark(self, time_s: float, *, idle: bool = False) -> None:
        """Declare that the event times of this task's later tuples are normally at least `time_s`.

        Each bolt task downstream gets a call of `process_watermark` when the smallest watermark of its upstream tasks
        has grown. A tuple with an earlier event time is late: it is delivered as usual, and the bolt decides.

        A watermark is sent at once, behind all tuples that this task has emitted. Each call therefore ends a batch:
        call it a few times per second, not for each tuple. Repeat the watermark once a second, also when the time is
        the same and while the task is idle, because a bolt task that was restarted hears of it by the next watermark.

        Args:
            time_s: an event time, in seconds since the epoch, of microsecond resolution; it may be negative. A time
                below that of an earlier call counts as the earlier one.
            idle: whether the task has no data now. It then holds back no watermark until its next call without `idle`.

        Raises:
            EmitError: when the time is not a finite number, its microseconds exceed 64 bits, or the spout has no
                collector.
        """
        self._collector.emit_watermark(time_s, idle)

    def report_error(self, error: Exception) -> None:
        """Show and count an error as if this call had raised it, and continue the call.

        Use it where one part of a call fails and the other parts must not be lost. No
        root is failed.

        Raises:
            Exception: the error itself, when `topology.on.error` is ``stop``.
            UsageError: when `error` is not an exception.
            EmitError: when the component has no collector.
        """
        self._collector.report_error(error)

    def set_probability(self, probability: float) -> None:
        """Declare with which probability the tuples that are emitted from now on were kept.

        For a component that sheds tuples itself. Their receivers see the reciprocal as `Tuple.weight`. What was emitted
        before is sent with the former probability, so a change ends a batch. The spout needs
        ``topology.shed``, with the policy ``none`` if the engine sheds nothing.

        Args:
            probability: above 0 and at most 1; the component begins with 1.

        Raises:
            EmitError: when the probability is out of its range, or the component has no collector.
        """
        self._collector.set_probability(probability)


class Spout(BaseSpout):
    """The base class of spouts: implement `next_tuple`, and declare the emitted fields in `outputs`.

    The engine calls every method from one thread, one call at a time. It runs one object for each task.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the task. Called once, before the other methods.

        Args:
            config: the configuration of the topology, overridden by the component's own.
            context: valid until the task ends.
        """

    def close(self) -> None:
        """Release resources. Called at an orderly stop, but not when the process is killed."""

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or return without an emit when there are none yet.

        Called again and again. Do not block for long: acks, fails and commands wait meanwhile.
        """

    def ack(self, tup_id: object) -> None:
        """Receive the id of an emitted tuple whose tree is complete."""

    def fail(self, tup_id: object) -> None:
        """Receive the id of an emitted tuple whose tree failed or timed out. Emit the tuple again to replay it."""

    def activate(self) -> None:
        """Resume after a pause of the topology."""

    def deactivate(self) -> None:
        """Pause: the engine calls no `next_tuple` until `activate`.

        Also called when the task starts in a paused topology.
        """

    def backlog(self) -> float | None:
        """Return how many tuples wait at the task's source, or None if that is not known.

        Override it where the source can tell: the metric `backlog` shows the value, and the health manager sizes the
        topology by it. Called once per export period of the metrics, from the thread of the other methods; it delays
        them. An exception is shown and counts as None.
        """
        return None

    def shed_priority(self, values: Sequence[object]) -> float:
        """Return the priority of a tuple, with the policy ``priority`` of ``topology.shed`` and without a field for it.

        The tuples with the lowest numbers are shed first. Called in each `emit`, before the tuple is placed.
        """
        return 0.0

    def end(self) -> None:
        """Declare that this task makes no new tuple. The topology finishes when every spout task has declared it.

        Further calls have no effect. What the present call of `next_tuple` emits counts, also after `end`; the engine
        does not call `next_tuple` again.

        At least once the task ends when the last tree is complete, and there is one exception. If `fail` is called and
        emits nothing, the spout is expected to have queued the tuple. The engine then calls `next_tuple` until as many
        tuples are emitted as have failed, or until no tree is open and a call emits nothing.

        Raises:
            EmitError: when the spout has no collector.
        """
        self._collector.end()
