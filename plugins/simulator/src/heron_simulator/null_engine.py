"""The yardstick of the benchmarks: a topology's classes joined by direct calls, with a Tuple made per call.

There is no engine here: an emit makes the tuple and calls `process` of the task that gets it. No serialisation, no
queue, no count, no check; keys are grouped by the interpreter's own `hash`. What a real engine measures against it is
the price of its processes, or what it gains by running them in parallel.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

from heron.api.bolt import Bolt
from heron.api.capture import TopologySource
from heron.api.config import merged_config
from heron.api.definition import (
    DEFAULT_STREAM,
    ComponentDefinition,
    TopologyDefinition,
)
from heron.api.spout import Spout
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.errors import UsageError
from heron.instance.data_queue import Sleeper
from heron.instance.task_context import TaskContext
from heron.instance.task_metrics import TaskMetrics
from heron.instance.threadsafe import QueuedCollector, QueuedTarget
from heron.instance.user_component import initialise, specialise
from heron.kernel.user_code import load_class
from heron.planner.logical_plan import logical_plan
from heron.planner.physical_plan import PlanIndex
from heron_simulator.null_emit import Emit, Process, emit_to, emit_to_each
from heron_simulator.placement import place

__all__ = ["NullRun", "run_null_engine"]

_CALLS_PER_LOOK = 1000  # calls of `next_tuple` between two looks at the clock


@dataclass(frozen=True, slots=True)
class NullRun:
    """How a run went: its bolts know how many tuples they have had, which is what makes a rate of `elapsed_s`.

    `calls` are calls of `next_tuple`, `components` the authors' objects by name and index.
    """

    calls: int
    elapsed_s: float
    components: dict[str, tuple[Spout | Bolt, ...]]


def run_null_engine(
    source: TopologyDefinition | TopologySource, *, seconds: float = math.inf, calls: int | None = None
) -> NullRun:
    """Runs until the time is up, `calls` calls of `next_tuple` are made, or every spout has ended.

    `finish` and `close` are not called. Emits go to the default stream, divided by shuffle, fields or all groupings;
    acks and fails go nowhere.

    Raises:
        UsageError: when there is neither `seconds` nor `calls`, or the topology has other streams or groupings.
        BaseException: whatever the components raise.
    """
    if seconds == math.inf and calls is None:
        msg = "run_null_engine: it would never end; give seconds, or calls of next_tuple"
        raise UsageError(msg)
    definition = source if isinstance(source, TopologyDefinition) else source.definition()
    engine = _Engine(definition)
    gc.collect()
    gc.freeze()  # as instances do
    try:
        made, elapsed_s = _drive(engine.spouts, engine.ending, seconds, math.inf if calls is None else calls)
    finally:
        gc.unfreeze()
    return NullRun(made, elapsed_s, {name: tuple(tasks) for name, tasks in engine.components.items()})


def _drive(spouts: Sequence[tuple[int, Spout]], ending: set[int], seconds: float, calls: float) -> tuple[int, float]:
    made = 0
    start_s = now_s = monotonic_s()
    while made < calls and now_s - start_s < seconds and len(ending) < len(spouts):
        for task_id, spout in spouts:
            if task_id in ending:
                continue
            size = int(min(_CALLS_PER_LOOK, calls - made))
            next_tuple = spout.next_tuple
            for _ in repeat(None, size):
                next_tuple()
            made += size
        now_s = monotonic_s()
    return made, now_s - start_s


class _Engine:
    """The components, made and initialised from the last to the first, as each needs the ones that it calls."""

    def __init__(self, definition: TopologyDefinition) -> None:
        self.components: dict[str, list[Spout | Bolt]] = {}
        self.spouts: list[tuple[int, Spout]] = []
        self.ending: set[int] = set()
        self._definition = definition
        self._index = PlanIndex(place(definition))
        for node in reversed(logical_plan(definition).nodes):
            tasks = self._index.tasks_of(node.component.name)
            self.components[node.component.name] = [self._make(node.component, task_id) for task_id in tasks]

    def _make(self, definition: ComponentDefinition, task_id: int) -> Spout | Bolt:
        collector = _NullCollector(lambda: self.ending.add(task_id), self._emit_of(definition, task_id))
        component: Spout | Bolt = load_class(definition.entry)(delegate=collector)
        queued = QueuedCollector(QueuedTarget(), Sleeper())
        context = TaskContext(self._index, task_id, TaskMetrics(), queued)
        initialise(component, merged_config(self._definition.config, definition.config), context)
        if isinstance(component, Spout):
            specialise(component, {"emit": collector.emit})
            self.spouts.append((task_id, component))
        else:
            specialise(component, {"emit": collector.emit, "ack": collector.ack, "fail": collector.fail})
        return component

    def _emit_of(self, definition: ComponentDefinition, task_id: int) -> Emit:
        if any(output.name != DEFAULT_STREAM for output in definition.outputs):
            msg = f"component {definition.name!r}: has more than the default stream, which the null engine has not"
            raise UsageError(msg)
        make = Tuple.source(definition.name, DEFAULT_STREAM, task_id)
        emits = [
            emit_to(self._processes(consumer.name), subscription.grouping, definition, make)
            for consumer, subscription in self._definition.consumers(definition.name, DEFAULT_STREAM)
        ]
        return emits[0] if len(emits) == 1 else emit_to_each(emits)

    def _processes(self, consumer: str) -> list[Process]:
        return [bolt.process for bolt in self.components[consumer] if isinstance(bolt, Bolt)]


class _NullCollector:
    """Both collectors; `emit` is the function itself, so that it costs no look-up more than it must."""

    def __init__(self, end: Callable[[], None], emit: Emit) -> None:
        self.end = end
        self.emit = emit

    @staticmethod
    def ack(tup: Tuple) -> None:
        """Nobody hears of it."""

    @staticmethod
    def fail(tup: Tuple) -> None:
        """Nobody hears of it."""
