"""The bolts that run stages: one for elements, one for operators with state by key, one for windows by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, ITwoPhaseStatefulComponent, TopologyContext, Tuple, ValueState
from heron.clock import Clock, SystemClock
from heron.errors import UsageError
from heron_streamlet.event_time import END_OF_TIME_US, START_OF_TIME_US
from heron_streamlet.fold import Reduce
from heron_streamlet.graph import LATE
from heron_streamlet.keyed_operators import KeyedOperator, WindowFold, WindowJoin
from heron_streamlet.operators import Keyed
from heron_streamlet.stage_code import OperatorError, StageCode
from heron_streamlet.task_host import TaskHost, stream_name
from heron_streamlet.timers import Timers

__all__ = ["POSITIONS_KEY", "ClockStageBolt", "KeyedStageBolt", "StageBolt", "WindowStageBolt"]

_LAST_TRANSACTION = 1


class StageBolt(Bolt, ITwoPhaseStatefulComponent):
    """Runs a stage that begins with operators without state."""

    host: TaskHost
    anchors: tuple[Tuple, ...] | None = None

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Generate the code of the stage."""
        self.host = TaskHost(self, config, context)
        self.code = StageCode(self.host.stage, self.host)
        self.start(config, context)

    def process(self, tup: Tuple) -> None:
        """Process a row; `start` replaces this method by the generated function."""

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin the stage."""
        del config, context
        values = "v{0}, t, b" if self.host.stage.head.timed else "v{0},"
        prologue = [f"({values}) = tup.values"]
        if self.host.tracked:
            prologue.insert(0, "component.anchors = (tup,)")
        epilogue = ["component.ack(tup)"] if self.host.tracked else []
        self.process = self.code.process("tup", prologue, epilogue)  # type: ignore[method-assign]

    def send(self, values: tuple[Any, ...], stream: str) -> None:
        """Emit a row that belongs to the tuple at hand, if there is one."""
        self.emit(values, stream=stream, anchors=self.anchors)

    def process_watermark(self, time_s: float) -> None:
        """Send what is combined; the watermark follows it."""
        self.anchors = None
        self.reach(round(time_s * 1_000_000))
        self.host.flush()

    def reach(self, watermark_us: int) -> None:
        """The watermark has this time."""

    def finish(self) -> None:
        """Close all windows; without checkpoints, commit transactions."""
        self.anchors = None
        self.reach(END_OF_TIME_US)
        self.host.flush()
        if not self.host.saves:
            for sink in self.host.transactions:
                sink.prepare(_LAST_TRANSACTION)
                sink.commit(_LAST_TRANSACTION)

    def pre_save(self, checkpoint_id: str) -> None:
        """Send what is combined, before the marker of the checkpoint; prepare transactions."""
        self.anchors = None
        self.host.flush()
        for sink in self.host.transactions:
            sink.prepare(int(checkpoint_id))

    def post_save(self, checkpoint_id: str) -> None:
        """Commit transactions."""
        for sink in self.host.transactions:
            sink.commit(int(checkpoint_id))

    def pre_restore(self, checkpoint_id: str) -> None:
        """Discard transactions that are newer than the checkpoint."""
        for sink in self.host.transactions:
            sink.restore(int(checkpoint_id or 0))

    def close(self) -> None:
        """Close the authors' objects."""
        if hasattr(self, "host"):  # `initialize` may have failed
            self.host.close()


class KeyedStageBolt(StageBolt):
    """Runs a stage that begins with an operator with state for each key."""

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Take the state of the keys of this task, and the times at which their windows close."""
        node = self.host.stage.head
        self.operator: KeyedOperator = self.host.keyed_operator()
        self.follow = self.code.follow()
        self.states: ValueState[Any, Any] = context.keyed_state(node.name, ValueState)
        self.watermark_us = START_OF_TIME_US
        self.timers = Timers()
        for key, state in self.states.items():
            for time_us in self.operator.timers_us(state):
                self.timers.add(time_us, key)
        self._timed_rows = isinstance(node.operator, Keyed) and node.timed
        self._late = [outlet for outlet in self.host.stage.outlets if outlet.output == LATE]

    def process(self, tup: Tuple) -> None:
        """Add a row to the state of its key."""
        key, *row = tup.values
        if isinstance(self.host.stage.head.operator, Keyed) and not self._timed_rows:
            row += (START_OF_TIME_US, START_OF_TIME_US)
        if self.host.tracked:
            self.anchors = (tup,)
        self.add(key, tuple(row))
        if self.host.tracked:
            self.ack(tup)

    def add(self, key: object, row: tuple[Any, ...]) -> None:
        """Add a row, unless its window is closed."""
        operator = self.operator
        timer_us = operator.timer_us(row)
        if timer_us > START_OF_TIME_US:
            if timer_us <= self.watermark_us:
                self._missed(key, row)
                return
            self.timers.add(timer_us, key)
        state = self.states.get(key)
        try:
            after = operator.add(key, state, row, self.follow)
        except OperatorError:
            raise
        except Exception as error:
            raise self.code.located(error) from error
        if after is not state:
            self.states.put(key, after)

    def reach(self, watermark_us: int) -> None:
        """`StageBolt.reach`. A window whose results fail is lost alone; the first such error is raised at the end."""
        self.watermark_us = max(watermark_us, self.watermark_us)
        failed: list[Exception] = []
        for key in self.timers.due(watermark_us):
            for window in self._take_closed(key, watermark_us):
                try:
                    for element, time_us in self.operator.results(key, window):
                        self.follow(element, time_us, START_OF_TIME_US)
                except OperatorError as error:
                    failed.append(error)
                except Exception as error:  # of an author's function
                    failed.append(self.code.located(error))
        if failed:
            raise failed[0]

    def _take_closed(self, key: object, watermark_us: int) -> list[Any]:
        try:
            state = self.states.get(key)
        except UsageError:  # an update gave the key to another task
            return []
        if state is None:
            return []
        after, closed = self.operator.take_closed(state, watermark_us)
        if after is None:
            self.states.remove(key)
        elif after is not state:
            self.states.put(key, after)
        return closed

    def _missed(self, key: object, row: tuple[Any, ...]) -> None:
        """A row arrives after its window closed: its source was idle, or sends it again."""
        self.host.late(1)
        value = _element(self.operator, row)
        for outlet in self._late if value else ():
            times = (START_OF_TIME_US, START_OF_TIME_US) if outlet.timed else ()
            element = (key, *value) if self.operator.keyed else value[0]
            self.send((element, *times), stream_name(outlet))


class WindowStageBolt(KeyedStageBolt):
    """Runs a stage that begins with folded windows of event time: `KeyedStageBolt`, with fewer calls for each row."""

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """As `KeyedStageBolt.start`."""
        super().start(config, context)
        operator = self.operator
        assert isinstance(operator, WindowFold)  # noqa: S101  # chosen by the compiler
        self.span_us = operator.window.size_us + operator.window.allowed_lateness_us
        self.merge = operator.fold.merger()

    def process(self, tup: Tuple) -> None:
        """Merge an accumulator into that of its key and window."""
        key, start_us, accumulator = tup.values
        if start_us + self.span_us <= self.watermark_us:
            self.anchors = (tup,) if self.host.tracked else None
            self._missed(key, (start_us, accumulator))
        elif (state := self.states.get(key)) is None:
            self.states.put(key, {start_us: accumulator})
            self.timers.add(start_us + self.span_us, key)
        elif start_us in state:
            try:
                state[start_us] = self.merge(state[start_us], accumulator)
            except Exception as error:
                raise self.code.located(error) from error
        else:
            state[start_us] = accumulator
            self.timers.add(start_us + self.span_us, key)
        if self.host.tracked:
            self.ack(tup)


class ClockStageBolt(KeyedStageBolt):
    """Runs a stage that begins with windows by the clock of the task. Ticks close them."""

    clock: Clock = SystemClock()

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """As `KeyedStageBolt.start`; learn which input is which."""
        super().start(config, context)
        self._positions = config[POSITIONS_KEY]

    def process(self, tup: Tuple) -> None:
        """Assign a pair to the windows of now."""
        # A clock that is set back opens no window again.
        now_us = max(round(self.clock.wall_s() * 1_000_000), self.watermark_us)
        key, value = tup.values
        if self.host.tracked:
            self.anchors = (tup,)
        for row in self._rows(value, now_us, tup):
            self.add(key, row)
        if self.host.tracked:
            self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:  # the clock tells
        """Close the windows that have ended."""
        self.anchors = None
        self.reach(round(self.clock.wall_s() * 1_000_000))
        self.host.flush()

    def process_watermark(self, time_s: float) -> None:
        """Event time does not close these windows."""

    def _rows(self, value: object, now_us: int, tup: Tuple) -> list[tuple[Any, ...]]:
        operator = self.operator
        if isinstance(operator, WindowFold):
            return [(start_us, operator.fold.first(value)) for start_us in operator.window.starts_of(now_us)]
        if isinstance(operator, WindowJoin):
            side = self._positions[f"{tup.component}:{tup.stream}"]
            return [(start_us, (side, value)) for start_us in operator.window.starts_of(now_us)]
        return [(value, now_us)]


POSITIONS_KEY = "heron.streamlet.positions"


def _element(operator: KeyedOperator, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The value of a row, in a tuple; empty if the row is an accumulator of other values."""
    if isinstance(operator, WindowJoin):
        return (row[1][1],)
    if isinstance(operator, WindowFold):
        return (row[1],) if isinstance(operator.fold, Reduce) else ()
    return (row[0],)
