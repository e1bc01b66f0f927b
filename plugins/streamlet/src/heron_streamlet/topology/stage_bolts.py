"""The bolts that run stages: one for elements, one for operators with state by key, one for windows by the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heron.api import Bolt, ITwoPhaseStatefulComponent, IUpdatable, TopologyContext, Tuple, ValueState
from heron.clock import Clock, SystemClock
from heron_streamlet.failures import OperatorError
from heron_streamlet.runtime.early_results import keyed_stage
from heron_streamlet.runtime.keyed_stage import KeyedStage
from heron_streamlet.runtime.paned_stage import PanedStage
from heron_streamlet.runtime.stage_code import StageCode, row_prologue
from heron_streamlet.topology.task_host import TaskHost
from heron_streamlet.windowing.event_time import END_OF_TIME_US
from heron_streamlet.windowing.keyed_operators import KeyedOperator, WindowFold

__all__ = ["POSITIONS_KEY", "ClockStageBolt", "KeyedStageBolt", "StageBolt", "WindowStageBolt"]

_IN_PANES = 262_144  # accumulators, 40 MB of counts: a state can be on a disk because it exceeds the memory
_MOVED_AT_ONCE = 16_384  # accumulators; a checkpoint waits some 0.1 s for them


class StageBolt(Bolt, ITwoPhaseStatefulComponent):
    """Runs a stage that begins with operators without state."""

    clock: Clock = SystemClock()
    host: TaskHost
    anchors: tuple[Tuple, ...] | None = None

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Generate the code of the stage."""
        self.host = TaskHost(self, config, context)
        self.code = StageCode(self.host.stage, self.host)
        self.start(config, context)
        if self.host.tracked:
            self.process = self._acked(self.process)  # type: ignore[method-assign,assignment]

    def process(self, tup: Tuple) -> None:
        """Process a row; `start` replaces this method by the generated function."""

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin the stage."""
        del config, context
        self.process = self.code.process("tup", row_prologue(self.code.stage, "tup.values"))  # type: ignore[method-assign]

    def _acked(self, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """What acks a tuple after `process`, also if that fails: an element that fails once would fail each time."""

        def acked(tup: Tuple) -> None:
            self.anchors = (tup,)
            try:
                process(tup)
            except OperatorError as error:  # `process` has counted it
                self.report_error(error)
            self.ack(tup)

        return acked

    def send(self, values: tuple[Any, ...], stream: str) -> None:
        """Emit a row that belongs to the tuple at hand, if there is one."""
        self.emit(values, stream=stream, anchors=self.anchors)

    def process_watermark(self, time_s: float) -> None:
        """Send what is combined; the watermark follows it."""
        self.leave(round(time_s * 1_000_000))

    def process_tick(self, tup: Tuple) -> None:  # the clock tells
        """Send what is combined, for early results downstream: it would wait for the next watermark."""
        self.leave()

    def leave(self, watermark_us: int | None = None) -> None:
        """Send what is combined, after the results of the windows that a watermark closes. What fails is reported."""
        self.anchors = None
        failed = [] if watermark_us is None else self.reach(watermark_us)
        for error in (*failed, *self.host.flush()):
            self.host.failed(error)

    def reach(self, watermark_us: int) -> list[OperatorError]:
        """The watermark has this time; return what failed."""
        del watermark_us
        return []

    def finish(self) -> None:
        """Close all windows; without checkpoints, commit transactions."""
        self.leave(END_OF_TIME_US)
        if not self.host.saves:
            self.host.commit_all()

    def pre_save(self, checkpoint_id: str) -> None:
        """Send what is combined, before the marker of the checkpoint; prepare transactions."""
        self.leave()
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
        """Take the state of the keys of this task."""
        node = self.host.stage.head
        self.states: ValueState[Any, Any] = context.keyed_state(node.name, ValueState)
        self.keyed = self.head(self.host.keyed_operator())
        self.receive = self.keyed.receive

    def head(self, operator: KeyedOperator) -> KeyedStage:
        """The head of the stage, with the state of the keys of this task."""
        return keyed_stage(operator, self.code, self.states, repeats=True)

    def process(self, tup: Tuple) -> None:
        """Add a row to the state of its key."""
        try:
            self.receive(tuple(tup.values))
        except OperatorError as error:
            self.host.counted(error)
            raise

    def reach(self, watermark_us: int) -> list[OperatorError]:
        """`StageBolt.reach`."""
        return self.keyed.reach(watermark_us)

    def process_tick(self, tup: Tuple) -> None:  # the clock tells
        """Give the early results that are due."""
        self.anchors = None
        for error in self.keyed.give_early(self.clock.monotonic_s()):
            self.host.failed(error)
        self.leave()


class WindowStageBolt(KeyedStageBolt, IUpdatable):
    """Runs a stage that begins with folded windows of event time, which keep accumulators in panes."""

    def head(self, operator: KeyedOperator) -> KeyedStage:
        """`KeyedStageBolt.head`."""
        assert isinstance(operator, WindowFold)  # noqa: S101  # chosen by the compiler
        at_most = _MOVED_AT_ONCE if self.host.saves else _IN_PANES
        self.paned = PanedStage(operator, self.code, self.states, at_most=at_most)
        return self.paned

    def process(self, tup: Tuple) -> None:
        """Merge an accumulator into that of its key and pane."""
        self.receive(tup.values)

    def update(self, context: TopologyContext) -> None:
        """Forget the keys that an update gave to other tasks."""
        self.paned.keep(context.owns)

    def pre_save(self, checkpoint_id: str) -> None:
        """As `StageBolt.pre_save`, with all accumulators in the state."""
        super().pre_save(checkpoint_id)
        self.paned.move_to_state()


class ClockStageBolt(KeyedStageBolt):
    """Runs a stage that begins with windows by the clock of the task. Ticks close them."""

    def start(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """As `KeyedStageBolt.start`; learn which input is which."""
        super().start(config, context)
        self._positions = config[POSITIONS_KEY]

    def process(self, tup: Tuple) -> None:
        """Assign a pair to the windows of now."""
        # A clock that is set back opens no window again.
        now_us = max(round(self.clock.wall_s() * 1_000_000), self.keyed.watermark_us)
        key, value = tup.values
        side = self._positions[f"{tup.component}:{tup.stream}"]
        try:
            self.keyed.add_by_clock(key, side, value, now_us)
        except OperatorError as error:
            self.host.counted(error)
            raise

    def process_tick(self, tup: Tuple) -> None:  # the clock tells
        """Close the windows that have ended; give early results of the others."""
        self.leave(round(self.clock.wall_s() * 1_000_000))
        super().process_tick(tup)

    def process_watermark(self, time_s: float) -> None:
        """Event time does not close these windows."""


POSITIONS_KEY = "heron.streamlet.positions"
