"""A topology in one process and one thread: tasks take turns, and time passes when no task has work."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from heron.api.api_constants import (
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS,
    TOPOLOGY_MESSAGE_TIMEOUT_SECS,
    TOPOLOGY_RELIABILITY_MODE,
    TopologyReliabilityMode,
)
from heron.api.bolt import Bolt
from heron.api.capture import TopologySource
from heron.api.config import setting
from heron.api.dead_letter import DeadLetter
from heron.api.definition import ComponentKind, TopologyDefinition
from heron.api.spout import Spout
from heron.clock import Clock
from heron.errors import LimitExceededError, TopologyFailedError, UsageError, known, nearest
from heron.instance.codec.serializers import Serializers
from heron.instance.queues.data_queue import Sleeper
from heron.kernel.settings import EngineSettings
from heron.planner.logical_plan import logical_plan
from heron.planner.physical_plan import PlanIndex, TaskPlan, TopologyState
from heron.spi.driver import DriverRef
from heron.spi.metricsink import OF_AUTHORS
from heron_simulator.ack_ledger import AckLedger
from heron_simulator.author_code import AuthorCode, definition_and_code
from heron_simulator.placement import place
from heron_simulator.simulated_bolt import SimulatedBolt
from heron_simulator.simulated_spout import SimulatedSpout
from heron_simulator.simulated_task import ComponentCounts, SimulatedTask, SimulationEnvironment

__all__ = ["MovableClock", "Simulation"]

_POLL_S = 0.004  # time between two calls of a `next_tuple` that emits nothing, as on processes
_LOOK_S = 0.25  # the longest wait in real time: other threads may have queued calls
_MAX_STEPS = 1_000_000


@runtime_checkable
class MovableClock(Clock, Protocol):
    """A clock that changes only when it is advanced, such as `heron_testing.fake_clock.FakeClock`."""

    def advance(self, seconds: float) -> None:
        """Advances the clock."""
        ...


class Simulation:
    """Runs a topology step by step and deterministically.

        with Simulation(words(), clock=FakeClock()) as simulation:
            simulation.run_until_finished()
            assert simulation.component("count", 0).counts["heron"] == 3

    Components, groupings, tuples, serialisation, ticks, `end` and `finish` behave as in processes. With ATLEAST_ONCE,
    acks, fails and message timeouts reach the spout. All tasks run in one process: they share module-level variables
    and `heron.api.global_metrics`.

    Args:
        source: a `TopologyBuilder`, a `Topology` class, or a definition together with `code`.
        clock: with a `MovableClock`, ticks and windows are deterministic too. Only `advance` moves it, and
            `run_until_finished` when no task has work. With a `SystemClock`, time is real.
        seed: shuffles the order of the turns, always in the same way for one seed, to find code that depends on the
            order; None keeps the order in which data flows.
        code: provides the author's classes; only for a definition.
        calls_per_step: how often a spout is called in one step, as long as it emits.
        serializers: the serializers that ``topology.serializer`` names, except for ``pickle``.
        settings: the settings of the engine; None takes the defaults.

    Raises:
        TopologyError: when the topology does not verify.
        ConfigError: when its configuration is not valid.
        TopologyFailedError: when a component cannot be constructed or initialised.
    """

    def __init__(
        self,
        source: TopologyDefinition | TopologySource,
        *,
        clock: Clock,
        seed: int | None = None,
        code: AuthorCode | None = None,
        calls_per_step: int = 1,
        serializers: Sequence[DriverRef] = (),
        settings: EngineSettings | None = None,
    ) -> None:
        definition, self._code = definition_and_code(source, code)
        self._serializers = Serializers(serializers)
        self._settings = settings or EngineSettings()
        self._clock = clock
        self._shuffle = random.Random(seed).shuffle if seed is not None else None  # noqa: S311  # no secret
        self._sleeper = Sleeper()
        self._index = PlanIndex(place(definition))
        self._ledger = _ledger_of(definition, clock)
        self._tasks = self._make_tasks(definition, calls_per_step)
        self.state = TopologyState.RUNNING
        self._to_close: list[SimulatedTask] = []
        try:
            for task in self._in_order:
                task.start()
                self._to_close.append(task)
        except TopologyFailedError:
            self._fail()
            raise

    def step(self) -> bool:
        """Every task takes one turn: spouts call `next_tuple`, bolts process everything that waits for them.

        Time does not pass. Returns whether there was work. When every task has ended, all tasks are closed and the
        state is FINISHED.

        Raises:
            TopologyFailedError: when `finish` failed, or other user code while `topology.on.error` is ``stop``.
        """
        if self.state is not TopologyState.RUNNING:
            return False
        order = list(self._in_order)
        if self._shuffle is not None:
            self._shuffle(order)
        try:
            worked = self._ledger is not None and self._ledger.expire()
            for task in order:
                worked = task.step() or worked
        except TopologyFailedError:
            self._fail()
            raise
        if all(task.ended for task in order):
            self.state = TopologyState.FINISHED
            self.close()
        return worked

    def advance(self, seconds: float) -> None:
        """Lets time pass. Ticks, timeouts and retries that become due meanwhile happen in order, each with a step.

        Raises:
            UsageError: when the clock is not a `MovableClock`.
            TopologyFailedError: as `step`.
        """
        clock = self._clock
        if not isinstance(clock, MovableClock):
            msg = (
                f"advance({seconds}): {type(clock).__name__} cannot be moved; construct the simulation with a FakeClock"
            )
            raise UsageError(msg)
        target_s = clock.monotonic_s() + seconds
        while (due_s := self._due_s()) <= target_s and self.state is TopologyState.RUNNING:
            clock.advance(max(0.0, due_s - clock.monotonic_s()))
            self.step()
        clock.advance(max(0.0, target_s - clock.monotonic_s()))
        self.step()

    def run_until_finished(self, max_steps: int = _MAX_STEPS) -> None:
        """Steps until every task has ended; lets time pass after each step without work.

        Raises:
            LimitExceededError: when that takes more than `max_steps` steps; names the tasks that have not ended.
            TopologyFailedError: as `step`.
        """
        for _ in range(max_steps):
            if self.state is not TopologyState.RUNNING:
                return
            if not self.step():
                self.pass_time()
        if self.state is TopologyState.RUNNING:
            open_tasks = known(f"{each.plan.component}[{each.plan.component_index}]" for each in self._open_tasks())
            msg = f"max_steps: not finished after {max_steps} steps; not ended: {open_tasks}; do the spouts call end()?"
            raise LimitExceededError(msg)

    def pass_time(self) -> None:
        """Lets time pass until the next event is due, at most until idle spouts are called again."""
        now_s = self._clock.monotonic_s()
        wait_s = self._due_s() - now_s
        if wait_s == math.inf or any(isinstance(task, SimulatedSpout) for task in self._open_tasks()):
            wait_s = min(wait_s, _POLL_S)
        if isinstance(self._clock, MovableClock):
            self._clock.advance(max(0.0, wait_s))
        else:
            self._sleeper.prepare()
            self._sleeper.sleep(min(wait_s, _LOOK_S))

    def component(self, name: str, index: int = 0) -> Spout | Bolt:
        """The author's object of a task.

        Raises:
            UsageError: when there is no such component or task.
        """
        return self._task(name, index).component

    def counts(self) -> dict[str, ComponentCounts]:
        """The counts of each component so far."""
        counts = {component.name: ComponentCounts() for component in self._index.plan.topology.components}
        for task in self._tasks.values():
            counts[task.plan.component] += task.counts()
        return counts

    def dead_letters(self, component: str) -> tuple[DeadLetter, ...]:
        """The dead letters of a component that no bolt receives, task by task, in their order.

        A spout has those of ``topology.replay.attempts``. Each component of a pipeline has those of its steps.

        Raises:
            UsageError: when there is no such component.
        """
        self._task(component, 0)
        tasks = [each for each in self._tasks.values() if each.plan.component == component]
        return tuple(letter for each in tasks for letter in each.dead_letters)

    def errors(self) -> tuple[str, ...]:
        """Each distinct failure of user code so far, one line each, as processes print them."""
        return tuple(line for task in self._tasks.values() for line in task.failures())

    def read_metrics(self, name: str, index: int = 0) -> dict[str, float]:
        """Reads and resets the metrics that a task has registered, as at the end of a period.

        Raises:
            UsageError: when there is no such component or task.
        """
        metrics = self._task(name, index).metrics.snapshot((), self._clock.monotonic_s(), final=True)
        return {
            each.name.removeprefix(OF_AUTHORS): each.value
            for each in metrics
            if each.name.startswith(OF_AUTHORS) and isinstance(each.value, int | float)
        }

    def close(self) -> None:
        """Closes every component, once. The state of a running topology becomes KILLED."""
        if self.state is TopologyState.RUNNING:
            self.state = TopologyState.KILLED
        tasks, self._to_close = self._to_close, []
        for task in tasks:
            task.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_tasks(self, definition: TopologyDefinition, calls: int) -> dict[tuple[str, int], SimulatedTask]:
        environment = SimulationEnvironment(
            index=self._index,
            settings=self._settings,
            clock=self._clock,
            code=self._code,
            inboxes={task.task_id: deque() for task in self._index.plan.tasks},
            ledger=self._ledger,
            sleeper=self._sleeper,
            serializers=self._serializers,
        )

        def make(task: TaskPlan, kind: ComponentKind) -> SimulatedTask:
            return (
                SimulatedSpout(environment, task, calls)
                if kind is ComponentKind.SPOUT
                else SimulatedBolt(environment, task)
            )

        kinds = {node.component.name: node.component.kind for node in logical_plan(definition).nodes}
        tasks = [self._index.tasks[task_id] for name in kinds for task_id in self._index.tasks_of(name)]
        return {(task.component, task.component_index): make(task, kinds[task.component]) for task in tasks}

    def _fail(self) -> None:
        self.state = TopologyState.FAILED
        self.close()

    @property
    def _in_order(self) -> list[SimulatedTask]:
        return list(self._tasks.values())

    def _open_tasks(self) -> list[SimulatedTask]:
        return [task for task in self._in_order if not task.ended]

    def _due_s(self) -> float:
        expiry_in_s = self._ledger.next_expiry_in_s() if self._ledger is not None else math.inf
        return min(self._clock.monotonic_s() + expiry_in_s, *(task.due_s() for task in self._in_order))

    def _task(self, name: str, index: int) -> SimulatedTask:
        found = self._tasks.get((name, index))
        if found is None:
            names = [each.name for each in self._index.plan.topology.components]
            parallelism = len(self._index.tasks_of(name))
            if parallelism:
                msg = f"component {name!r} has no task with index {index}; it has {parallelism}, from index 0"
            else:
                msg = f"unknown component {name!r}{nearest(name, names)}; known: {known(names)}"
            raise UsageError(msg)
        return found


def _ledger_of(definition: TopologyDefinition, clock: Clock) -> AckLedger | None:
    config = definition.config
    if setting(config, TOPOLOGY_RELIABILITY_MODE) != TopologyReliabilityMode.ATLEAST_ONCE.value:
        return None
    timeout_s = float(str(setting(config, TOPOLOGY_MESSAGE_TIMEOUT_SECS)))
    return AckLedger(clock, timeout_s if setting(config, TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS) else math.inf)
