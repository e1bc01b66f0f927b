"""Bolts: the components that process tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from heron.api.columns import Columns
from heron.api.component import BaseComponent, BoltCollector, UnboundCollector
from heron.api.component_spec import HeronComponentSpec, Inputs
from heron.api.context import TopologyContext
from heron.api.stream import Stream
from heron.api.tuple import Tuple, TupleHelper
from heron.author_text import class_name
from heron.errors import UsageError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["BaseBolt", "Bolt"]


class BaseBolt(BaseComponent):
    """The methods that a bolt calls. Authors derive from `Bolt`.

    Attributes:
        outputs: the declared outputs: field names of the default stream, and `Stream` objects. The attribute exists
            only in classes that set it, as in heronpy.
    """

    outputs: ClassVar[Sequence[str | Stream]]
    received_from: tuple[str, str, int] = ("", "", 0)
    """In `process_columns`: component, stream and task id of the emitter of the batch."""
    received_weight: float = 1.0
    """In `process_columns`: the weight of each row of the batch; see `heron.api.Tuple.weight`."""
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
        """Return this bolt as a part of a topology.

        Args:
            name: the name of the component; None takes the name of the attribute in a `Topology` class.
            inputs: ``{spec or spec["stream"]: grouping}``, or a list of specs and streams for the shuffle grouping.
            par: the number of tasks, at least 1.
            config: the component's own configuration; it has precedence over the topology's.
            optional_outputs: outputs in addition to those of the class.

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
        """Emit a tuple.

        Args:
            tup: the values, one for each declared field of the stream; copied before this method returns. A text is
                no sequence of values: emit ``[text]``.
            stream: the name of a declared output stream.
            anchors: received tuples that depend on this one: their trees complete only after it is acked.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the receiving tasks.

        Returns:
            The ids of the receiving tasks, or None without `need_task_ids`.

        Raises:
            EmitError: when the stream or task is unknown, the number of values is wrong, or the bolt has no collector.
        """
        return self._collector.emit(tup, stream, anchors, direct_task, need_task_ids)

    def emit_columns(
        self,
        batch: Columns,
        stream: str = "default",
        anchors: Iterable[Tuple | RecordBatch] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Emit the rows of a batch, in their order, as columns.

        The class must set ``columns = True``, or implement `process_columns`.

        Args:
            batch: a `pyarrow.RecordBatch` or Table, a data frame with Arrow's C interface (pandas, Polars), or a
                mapping of field names to arrays; one column for each declared field. It is copied or sent
                before this method returns.
            stream: the name of a declared output stream.
            anchors: received tuples and batches that depend on this one: their trees complete only after it is acked.
                A batch that was received is meant by the object itself, not by a slice or copy of it.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.

        Raises:
            EmitError: when the stream or task is unknown, the columns are not the declared fields, a type differs from
                the type of the same field in the task's first batch, a type cannot be a key where the stream is grouped
                by it, an anchor was not received, or the bolt has no collector.
        """
        self._collector.emit_columns(batch, stream, anchors, direct_task)

    def ack(self, tup: Tuple | RecordBatch) -> None:
        """Declare that the bolt has finished with a tuple, or with a batch and all its rows.

        A second ack, or the ack of a tick, is only counted.
        """
        self._collector.ack(tup)

    def fail(self, tup: Tuple | RecordBatch) -> None:
        """Declare that the bolt could not process a tuple or batch; its spout is informed at once."""
        self._collector.fail(tup)

    def report_error(self, error: Exception) -> None:
        """Show and count an error as if this call had raised it, and continue the call.

        Use it where one part of a call fails and the other parts must not be lost. Nothing is failed: a tuple of which
        a part is missing needs a `fail` too.

        Raises:
            Exception: the error itself, when `topology.on.error` is ``stop``.
            UsageError: when `error` is not an exception.
            EmitError: when the component has no collector.
        """
        self._collector.report_error(error)

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Return whether `tup` is a tick tuple.

        Raises:
            UsageError: when it is not a tuple.
        """
        try:
            return tup.stream == TupleHelper.TICK_TUPLE_ID
        except AttributeError as error:
            msg = f"is_tick: a {class_name(tup)} is not a tuple; give what `process` received"
            raise UsageError(msg) from error

    def set_probability(self, probability: float) -> None:
        """Declare with which probability the tuples that are emitted from now on were kept.

        For a component that sheds tuples itself. Their receivers see the reciprocal as `Tuple.weight`. What was emitted
        before is sent with the former probability, so a change ends a batch.

        In `process`, a bolt begins with the probability of the received tuple, and in other methods with 1.

        Args:
            probability: above 0 and at most 1; the component begins with 1.

        Raises:
            EmitError: when the probability is out of its range, or the component has no collector.
        """
        self._collector.set_probability(probability)


class Bolt(BaseBolt):
    """The base class of bolts: implement `process`, and declare the emitted fields in `outputs`.

    The engine calls every method from one thread, one call at a time. It runs one object for each task.
    """

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the task. Called once, before the other methods.

        Args:
            config: the configuration of the topology, overridden by the component's own.
            context: valid until the task ends.
        """

    def process(self, tup: Tuple) -> None:
        """Process a tuple. With at-least-once delivery, ack or fail it, here or later.

        An exception fails the tuple; ``topology.on.error: stop`` makes it end the instance.
        """

    def process_columns(self, batch: RecordBatch) -> None:
        """Process a batch of tuples as columns: a `pyarrow.RecordBatch` with a column for each field of the stream.

        A bolt that implements it gets no call of `process`: tuples that were emitted one by one arrive as batches too.
        `received_from` says where the batch comes from. With at-least-once delivery, ack or fail the batch, here or
        later. An exception fails it; ``topology.on.error: stop`` makes it end the instance.

        The batch may refer to memory of the engine, which stays unchanged as long as the batch or a part of it is kept.
        """

    @classmethod
    def uses_columns(cls) -> bool:
        """Return whether the component emits or receives columns."""
        return super().uses_columns() or cls.receives_columns()

    @classmethod
    def receives_columns(cls) -> bool:
        """Return whether the bolt implements `process_columns`, and so gets no call of `process`."""
        return cls.process_columns is not Bolt.process_columns

    def process_tick(self, tup: Tuple) -> None:
        """Act on a tick. Called every ``topology.tick.tuple.freq.secs`` seconds, if the component sets this key."""

    def process_watermark(self, time_s: float) -> None:
        """Act on the progress of event time. Called when the watermark of this task has grown, with its new time.

        The watermark is the smallest that the upstream tasks have sent, without those that are idle or have ended. An
        upstream task that has sent none yet holds it back. If all that have not ended are idle, it is the largest of
        theirs. It never decreases while the component lives, and it starts again after a restore. When all upstream
        tasks have ended, `finish` is called instead.

        Tuples emitted here leave before this task's watermark goes downstream. They belong to no tree unless you anchor
        them. After an exception the task continues, and its watermark goes downstream.

        Args:
            time_s: an event time, in seconds since the epoch; later tuples normally have no earlier one.
        """

    def finish(self) -> None:
        """Complete the work. Called when every producer of this task has ended; emitted tuples still arrive.

        A task that restarts in the meantime gets a second call. Ack every pending tuple before this point: a spout
        does not end while it waits for an ack.
        """

    def close(self) -> None:
        """Release resources. Called at an orderly stop, but not when the process is killed."""
