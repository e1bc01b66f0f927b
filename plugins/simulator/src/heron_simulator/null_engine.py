"""The yardstick of the benchmarks: a topology's classes joined by direct calls, with a new `Tuple` per call.

An emit makes the tuple and calls `process` of the task that receives it. There is no serialisation, queue, count or
check, and keys are grouped by the interpreter's `hash`. The ratio of a real engine to it shows the cost of processes,
or the gain of running them in parallel.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol

from heron.api.bolt import Bolt
from heron.api.capture import TopologySource
from heron.api.config import merged_config
from heron.api.definition import (
    DEFAULT_STREAM,
    ComponentDefinition,
    GroupingDefinition,
    GroupingKind,
    TopologyDefinition,
)
from heron.api.spout import Spout
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.errors import UsageError
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import Sleeper
from heron.instance.user.queued_collector import QueuedCollector, QueuedTarget
from heron.instance.user.task_context import TaskContext
from heron.instance.user.user_component import initialise, specialise
from heron.kernel.user_code import load_class
from heron.planner.logical_plan import logical_plan
from heron.planner.physical_plan import PlanIndex
from heron_simulator.placement import place

__all__ = ["NullRun", "run_null_engine"]

_CALLS_PER_LOOK = 1000  # calls of `next_tuple` between two readings of the clock


Process = Callable[[Tuple], None]
"""A bolt's `process`."""


class Emit(Protocol):
    """The `emit` of spouts and bolts: both pass the values first, and the null engine ignores everything else."""

    def __call__(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class NullRun:
    """The result of a run.

    `calls` counts the calls of `next_tuple`; `components` are the author's objects by name and index. The bolts count
    their tuples, and these counts divided by `elapsed_s` are the rate.
    """

    calls: int
    elapsed_s: float
    components: dict[str, tuple[Spout | Bolt, ...]]


def run_null_engine(
    source: TopologyDefinition | TopologySource, *, seconds: float = math.inf, calls: int | None = None
) -> NullRun:
    """Runs until the time is up, `calls` calls of `next_tuple` are made, or every spout has ended.

    `finish` and `close` are not called. Emits go to the default stream, whose consumers may use the groupings shuffle,
    fields and all. Acks and fails have no effect.

    Raises:
        UsageError: when there is neither `seconds` nor `calls`, or the topology has other streams or groupings.
        BaseException: everything that the components raise.
    """
    if seconds == math.inf and calls is None:
        msg = "run_null_engine: no limit is given; give seconds, or calls of next_tuple"
        raise UsageError(msg)
    definition = source if isinstance(source, TopologyDefinition) else source.definition()
    engine = _Engine(definition)
    gc.collect()
    gc.freeze()  # as instances do
    try:
        made, elapsed_s = _drive(engine.spouts, seconds, math.inf if calls is None else calls)
    finally:
        gc.unfreeze()
    return NullRun(made, elapsed_s, {name: tuple(tasks) for name, tasks in engine.components.items()})


def _drive(spouts: Sequence[_DrivenSpout], seconds: float, calls: float) -> tuple[int, float]:
    made = 0
    start_s = now_s = monotonic_s()
    while made < calls and now_s - start_s < seconds and any(not each.ending for each in spouts):
        for each in spouts:
            if not each.ending:
                made += each.call(int(min(_CALLS_PER_LOOK, calls - made)))
        now_s = monotonic_s()
    return made, now_s - start_s


class _DrivenSpout:
    """A spout and its calls, which `end` stops."""

    def __init__(self) -> None:
        self.spout = Spout()
        self.ending = False
        self._numbers: list[int] = []

    def call(self, times: int) -> int:
        """Calls `next_tuple` up to so many times, but not after `end`; returns the calls made."""
        next_tuple = self.spout.next_tuple
        self._numbers = list(range(1, times + 1))
        number = 0
        for number in self._numbers:  # noqa: B007  # the last number is the count
            next_tuple()
        return number

    def end(self) -> None:
        """The spout's `end`: the loop over the numbers ends, without a check per call."""
        self.ending = True
        self._numbers.clear()


class _Engine:
    """The components, made from the last to the first, because each one needs the components that it calls."""

    def __init__(self, definition: TopologyDefinition) -> None:
        self.components: dict[str, list[Spout | Bolt]] = {}
        self.spouts: list[_DrivenSpout] = []
        self._definition = definition
        self._index = PlanIndex(place(definition))
        for node in reversed(logical_plan(definition).nodes):
            tasks = self._index.tasks_of(node.component.name)
            self.components[node.component.name] = [self._make(node.component, task_id) for task_id in tasks]

    def _make(self, definition: ComponentDefinition, task_id: int) -> Spout | Bolt:
        driven = _DrivenSpout()
        collector = _NullCollector(driven.end, self._emit_of(definition, task_id))
        component: Spout | Bolt = load_class(definition.entry)(delegate=collector)
        queued = QueuedCollector(QueuedTarget(), Sleeper())
        context = TaskContext(self._index, task_id, TaskMetrics(), queued)
        initialise(component, merged_config(self._definition.config, definition.config), context)
        if isinstance(component, Spout):
            specialise(component, {"emit": collector.emit})
            driven.spout = component
            self.spouts.append(driven)
        else:
            specialise(component, {"emit": collector.emit, "ack": collector.ack, "fail": collector.fail})
        return component

    def _emit_of(self, definition: ComponentDefinition, task_id: int) -> Emit:
        if any(output.name != DEFAULT_STREAM for output in definition.outputs):
            msg = f"component {definition.name!r}: the null engine supports only the default stream"
            raise UsageError(msg)
        make = Tuple.source(definition.name, DEFAULT_STREAM, task_id)
        emits = [
            _emit_to(self._processes(consumer.name), subscription.grouping, definition, make)
            for consumer, subscription in self._definition.consumers(definition.name, DEFAULT_STREAM)
        ]
        return emits[0] if len(emits) == 1 else _emit_to_each(emits)

    def _processes(self, consumer: str) -> list[Process]:
        return [bolt.process for bolt in self.components[consumer] if isinstance(bolt, Bolt)]


class _NullCollector:
    """Both collectors; `emit` is a function and not a method, which saves a look-up per call."""

    def __init__(self, end: Callable[[], None], emit: Emit) -> None:
        self.end = end
        self.emit = emit

    @staticmethod
    def ack(tup: Tuple) -> None:
        """Does nothing."""

    @staticmethod
    def fail(tup: Tuple) -> None:
        """Does nothing."""

    @staticmethod
    def report_error(error: Exception) -> None:
        """Ends the run, as every error does."""
        raise error


def _emit_to(
    processes: Sequence[Process], grouping: GroupingDefinition, source: ComponentDefinition, make: type[Tuple]
) -> Emit:
    """The emit for one consumer, specialised by its grouping."""
    if len(processes) == 1:
        return _emit_to_one(processes[0], make)
    match grouping.kind:
        case GroupingKind.SHUFFLE | GroupingKind.NONE | GroupingKind.LOCAL_OR_SHUFFLE:
            return _emit_in_turn(processes, make)
        case GroupingKind.FIELDS if len(grouping.fields) == 1:
            stream = source.output(DEFAULT_STREAM)
            return _emit_by_key(processes, stream.fields.index(grouping.fields[0]) if stream else 0, make)
        case GroupingKind.ALL:
            return _emit_to_each([_emit_to_one(process, make) for process in processes])
        case _:
            msg = (
                f"component {source.name!r}: the null engine does not support {grouping.kind.value} grouping over "
                f"{len(grouping.fields)} fields; use shuffle, all, or fields with one field"
            )
            raise UsageError(msg)


def _emit_to_one(process: Process, make: type[Tuple]) -> Emit:
    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        process(make(None, tuple(values)))

    return emit


def _emit_in_turn(processes: Sequence[Process], make: type[Tuple]) -> Emit:
    following = cycle(processes).__next__

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        following()(make(None, tuple(values)))

    return emit


def _emit_by_key(processes: Sequence[Process], position: int, make: type[Tuple]) -> Emit:
    count = len(processes)

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        processes[hash(values[position]) % count](make(None, tuple(values)))

    return emit


def _emit_to_each(emits: Sequence[Emit]) -> Emit:
    """The emit for any other number of consumers."""

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        for each in emits:
            each(values)

    return emit
