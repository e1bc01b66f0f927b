"""The components of the matrix: one calls with hostile arguments, the others show that their neighbours arrive.

A source emits numbers. An odd one is a cell: the hostile component calls for it, in one of the `Place`s. The others are
neighbours, which must reach the sink.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from heron.api import (
    AssignableMetrics,
    Bolt,
    BoltExecuteInfo,
    CounterState,
    CountMetric,
    ICustomGrouping,
    ITaskHook,
    ListState,
    MapState,
    MeanReducedMetric,
    MultiAssignableMetrics,
    MultiCountMetric,
    MultiMeanReducedMetric,
    Spout,
    State,
    StatefulComponent,
    Stream,
    TopologyContext,
    Tuple,
    ValueState,
)
from heron.clock import monotonic_s

__all__ = ["NEIGHBOURS", "OTHER_STREAMS", "HostileBolt", "HostileGrouping", "HostileSpout", "Place", "Sink", "Source"]

NEIGHBOURS = 4
"""The numbers without a cell, behind the cells."""

_METRICS_S = 2.0  # after the last cell; metrics are read every second
_MOST_S = 60.0  # then a test says what is missing
_TICKED = "ticked"

_STREAMS = ("value", Stream(["number"], "neighbour"))

OTHER_STREAMS: Mapping[str, Stream] = {
    "keyed": Stream(["value"], "keyed"),
    "partial": Stream(["value"], "partial"),
    "columns": Stream(["value"], "columns"),
    "direct": Stream(["value"], "direct", direct=True),
    "chosen": Stream(["call", "argument"], "chosen"),
}
"""The streams of lines that name them; a stream costs each cell time."""

CallFunction = Callable[[object, TopologyContext, object, object], object]


class Place(enum.StrEnum):
    """Where a component calls."""

    INITIALIZE = "initialize"
    PROCESS = "process"
    """`process` of a bolt, `next_tuple` of a spout."""
    TICK = "tick"
    FINISH = "finish"
    CALLBACK = "callback"
    """A task hook of a bolt, `ack` of a spout."""
    THREAD = "thread"
    """A thread of the author; the component's thread waits for it."""


class Pause:
    """Between the cells and the last neighbours: until ticks, acks and metrics have come, or until a test ends it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._begin_s: float | None = None if config["out"] else math.inf
        self._ticked = Path(config["out"], _TICKED) if config["place"] == Place.TICK else None
        self.over = False

    def is_over(self, settled: bool) -> bool:
        """Whether the last numbers may come; `settled` says that all others were acked or failed."""
        if self._begin_s is None:
            self._begin_s = monotonic_s()
        passed_s = monotonic_s() - self._begin_s
        done = settled and (self._ticked is None or self._ticked.exists())
        return self.over or passed_s >= (_METRICS_S if done else _MOST_S)


class Numbered(NamedTuple):
    """The id of a number; no hostile id is one."""

    number: int


def write(out: str, name: str, numbers: Sequence[int]) -> None:
    """Write numbers to a file of the folder `out`, if it is given."""
    if out:
        Path(out, f"{name}.json").write_text(json.dumps(sorted(numbers)), encoding="utf-8")


class HostileCalls(StatefulComponent):
    """What the hostile spout and bolt share."""

    calls: Sequence[CallFunction]
    arguments: Mapping[str, Callable[[], object]]

    def init_state(self, state: State) -> None:
        """Keep the state."""
        self.state = state

    def prepare(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Make what the lines of the calls use."""
        self.place = Place(config["place"])
        self.cells: list[tuple[int, str]] = [(int(call), argument) for call, argument in config["cells"]]
        self.context = context
        self.values = context.keyed_state("values", ValueState[Any, Any])
        self.counters = context.keyed_state("counters", CounterState[Any])
        self.lists = context.keyed_state("lists", ListState[Any, Any])
        self.maps = context.keyed_state("maps", MapState[Any, Any, Any])
        self.timed = context.keyed_state("timed", ValueState[Any, Any], ttl_s=60.0, event_time=True)
        self.count, self.counts = CountMetric(), MultiCountMetric()
        self.mean, self.means = MeanReducedMetric(), MultiMeanReducedMetric()
        self.gauge, self.gauges = AssignableMetrics(0), MultiAssignableMetrics()
        for name in ("count", "counts", "mean", "means", "gauge", "gauges"):
            context.register_metric(f"own-{name}", getattr(self, name), 1)

    def call(self, cell: tuple[int, str], tup: object) -> None:
        """Call as the cell says."""
        number, argument = cell
        self.calls[number](self, self.context, tup, self.arguments[argument]())

    def call_in_thread(self, cell: tuple[int, str], tup: object) -> None:
        """Call in a thread, and wait for its end; raises what the call has raised."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.call, cell, tup).result()


class Source(Spout):
    """Emits the numbers of all cells, and of neighbours behind them."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Read the number of cells."""
        self.last = 2 * len(config["cells"]) + NEIGHBOURS
        self.next = 0
        self.pause = Pause(config)
        self.acked: list[int] = []
        self.failed: list[int] = []
        self.out = config["out"]

    def close(self) -> None:
        """Write the acked and failed numbers, if there is a folder for it."""
        write(self.out, "acked", self.acked)
        write(self.out, "failed", self.failed)

    def next_tuple(self) -> None:
        """Emit a number; the last ones when the cells are through."""
        if self.next == self.last:
            self.end()
        elif self.next != self.last - NEIGHBOURS or self.pause.is_over(len(self.acked) + len(self.failed) == self.next):
            self.next += 1
            self.emit([self.next - 1], tup_id=Numbered(self.next - 1))

    def ack(self, tup_id: object) -> None:
        """Note it."""
        assert isinstance(tup_id, Numbered)
        self.acked.append(tup_id.number)

    def fail(self, tup_id: object) -> None:
        """Note it."""
        assert isinstance(tup_id, Numbered)
        self.failed.append(tup_id.number)


class HostileBolt(HostileCalls, Bolt):
    """Calls, and passes the numbers on."""

    outputs = _STREAMS
    columns = True

    def choose(self, number: int, argument: str) -> None:
        """Emit to the custom grouping, which answers as the call says."""
        raise NotImplementedError

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare, and call if this is the place."""
        self.prepare(config, context)
        self.of_grouping = bool(config["grouping"])
        self.waiting = list(self.cells)
        if self.place is Place.CALLBACK:
            context.add_task_hook(_BoltHook(self))
        if self.place is Place.INITIALIZE:
            self.call_all(bool(config["out"]))

    def call_all(self, reports: bool) -> None:
        """Call for all cells; `reports` errors where their place allows no exception."""
        for cell in self.cells:
            try:
                self.call(cell, None)
            except Exception as error:
                if not reports:
                    raise
                self.report_error(error)

    def call(self, cell: tuple[int, str], tup: object) -> None:
        """Call as the cell says."""
        if self.of_grouping:
            self.choose(*cell)
        else:
            super().call(cell, tup)

    def process(self, tup: Tuple) -> None:
        """Call for a cell, if this is the place; pass the number on."""
        number = tup.values[0]
        if (cell := self.cell_of(number)) is not None and self.place is Place.PROCESS:
            self.call(cell, tup)
        if cell is not None and self.place is Place.THREAD:
            self.call_in_thread(cell, tup)
        self.emit([number], "neighbour", anchors=[tup])
        self.ack(tup)

    def cell_of(self, number: int) -> tuple[int, str] | None:
        """The cell of a number."""
        return self.cells[number // 2] if number % 2 and number < 2 * len(self.cells) else None

    def process_tick(self, tup: Tuple) -> None:
        """Call for the next cell, if this is the place."""
        if self.place is Place.TICK and self.waiting:
            cell = self.waiting.pop(0)
            if not self.waiting and (out := self.context.get_config()["out"]):
                Path(out, _TICKED).touch()
            self.call(cell, tup)

    def finish(self) -> None:
        """Call, if this is the place."""
        if self.place is Place.FINISH:
            self.call_all(bool(self.context.get_config()["out"]))


class _BoltHook(ITaskHook):
    """Calls for a bolt after `process` has returned for a cell."""

    def __init__(self, bolt: HostileBolt) -> None:
        self._bolt = bolt

    def bolt_execute(self, bolt_execute_info: BoltExecuteInfo) -> None:
        """Call."""
        tup = bolt_execute_info.heron_tuple
        if (cell := self._bolt.cell_of(tup.values[0])) is not None:
            self._bolt.call(cell, tup)


class HostileSpout(HostileCalls, Spout):
    """A source that calls."""

    outputs = _STREAMS
    columns = True

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare, and call if this is the place."""
        self.prepare(config, context)
        self.numbers = list(range(2 * len(self.cells) + NEIGHBOURS))
        self.pause = Pause(config)
        self.left: object = None
        self.acked: list[int] = []
        self.failed: list[int] = []
        if self.place is Place.INITIALIZE:
            for cell in self.cells:
                try:
                    self.call(cell, None)
                except Exception as error:
                    if not config["out"]:
                        raise
                    self.report_error(error)

    def next_tuple(self) -> None:
        """Emit a number; call for a cell, if this is the place."""
        if not self.numbers:
            if self.pause.is_over(len(self.acked) + len(self.failed) == 2 * len(self.cells) + NEIGHBOURS):
                self.end()
            return
        number = self.numbers.pop(0)
        cell = self.cells[number // 2] if number % 2 and number < 2 * len(self.cells) else None
        self.emit([number], Numbered(number), "neighbour")
        if cell is not None and self.place is Place.PROCESS:
            self.call(cell, None)
        elif cell is not None and self.place is Place.THREAD:
            self.call_in_thread(cell, None)

    def close(self) -> None:
        """Write the acked and failed numbers, if there is a folder for it."""
        write(self.context.get_config()["out"], "acked", self.acked)
        write(self.context.get_config()["out"], "failed", self.failed)

    def backlog(self) -> Any:  # noqa: ANN401  # hostile too
        """Answer with what a call has set."""
        return self.left

    def ack(self, tup_id: object) -> None:
        """Note the id of a number, and call for a cell, if this is the place."""
        self.note(tup_id, self.acked)
        if type(tup_id) is Numbered and self.place is Place.CALLBACK:
            number = tup_id.number
            if number % 2 and number < 2 * len(self.cells):
                self.call(self.cells[number // 2], None)

    def fail(self, tup_id: object) -> None:
        """Note the id of a number."""
        self.note(tup_id, self.failed)

    def note(self, tup_id: object, numbers: list[int]) -> None:
        """Note the id if it is of a number."""
        if type(tup_id) is Numbered:
            numbers.append(tup_id.number)


class HostileGrouping(ICustomGrouping):
    """Answers as a call says."""

    tasks: Sequence[int] = ()

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Keep the tasks."""
        self.tasks = target_tasks


class Sink(Bolt):
    """Notes the numbers that arrive, and how many other tuples do."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with nothing."""
        self.numbers: list[int] = []
        self.others = 0
        self.out = config["out"]

    def process(self, tup: Tuple) -> None:
        """Note a number."""
        if tup.stream == "neighbour":
            self.numbers.append(tup.values[0])
        else:
            self.others += 1
        self.ack(tup)

    def finish(self) -> None:
        """Write the numbers, if there is a folder for it."""
        write(self.out, "sink", self.numbers)
