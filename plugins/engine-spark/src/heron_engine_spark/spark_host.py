"""Connects the code of a stage with a task of Spark: rows are collected for the slots of the next stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from heron.planner.key_group import key_group
from heron_engine_spark.failures import Failures
from heron_engine_spark.parcels import DONE, Counts, Logged, Rows, packed
from heron_engine_spark.spark_plan import SparkPlan
from heron_streamlet.failures import OperatorError, Step, failed_at
from heron_streamlet.plan.operators import Repartition, chosen_partition
from heron_streamlet.plan.stages import Form, Outlet, Stage
from heron_streamlet.runtime.stage_host import Send, StageHost
from heron_streamlet.windowing.event_time import EventClock
from heron_streamlet.windowing.failed_window import failed_window
from heron_streamlet.windowing.keyed_operators import WindowFold

__all__ = ["SparkHost"]

_ROWS_AT_ONCE = 4096
_LINES_AT_ONCE = 10_000
_SLOTS_KEPT = 100_000  # of keys that are str: about 10 MB


class _Component:
    """What the text of a stage calls `component`: one function for each outlet, and the clocks of a partition."""

    clocks: dict[int, EventClock]


class SparkHost(StageHost):
    """A stage in one task of Spark; `slot` is that of the task.

    Attributes:
        late_windows: how often an element was late.
        failures: what failed, of authors' functions and of rows that cannot be pickled; all others are sent.
    """

    def __init__(self, plan: SparkPlan, stage: Stage, slot: int) -> None:
        super().__init__(stage, plan.window_of, combines=True)
        self.component = _Component()
        self.late_windows = 0
        self.failures = Failures(plan.config)
        self._plan = plan
        self._slot = slot
        self._lines: list[str] = []
        self._waiting: list[tuple[Outlet, int, list[tuple[Any, ...]]]] = []
        self._senders: dict[int, Send] = {}

    def row(self, outlet: Outlet, values: str) -> str:
        """`StageHost.row`."""
        name = f"put{outlet.number}"
        setattr(self.component, name, self.sender(outlet))
        return f"component.{name}({values})"

    def sender(self, outlet: Outlet) -> Send:
        """`StageHost.sender`."""
        if outlet.number not in self._senders:
            rows: list[list[tuple[Any, ...]]] = [[] for _ in range(self._plan.slots)]
            self._waiting += [(outlet, slot, each) for slot, each in enumerate(rows)]
            self._senders[outlet.number] = self._sender(outlet, rows)
        return self._senders[outlet.number]

    def late(self, count: int) -> None:
        """`StageHost.late`."""
        self.late_windows += count

    def failed(self, error: OperatorError) -> None:
        """`StageHost.failed`.

        Raises:
            StoppedError: when the pipeline has to stop.
        """
        self.failures.add(error)

    def take_counts(self) -> Counts:
        """What was counted since the last call."""
        counts = self.failures.counts(self.late_windows)
        self.failures.clear()
        self.late_windows = 0
        return counts

    def log(self, element: object) -> None:
        """`StageHost.log`: the driver prints it."""
        self._lines.append(str(element))

    def parcels(self, least: int = _ROWS_AT_ONCE) -> Iterator[tuple[int, int, bytes]]:
        """What waits for a slot, where it is at least this number of rows; one is enough if it is a record batch."""
        for outlet, slot, rows in self._waiting:
            if len(rows) >= (1 if outlet.columns else least):
                body = self._packed(outlet, rows)
                rows.clear()
                yield self._plan.level_of[outlet.target], slot, body
        if self._lines and (least <= 1 or len(self._lines) >= _LINES_AT_ONCE):
            yield DONE, self._slot, packed(Logged(tuple(self._lines)))
            self._lines.clear()

    def _packed(self, outlet: Outlet, rows: list[tuple[Any, ...]]) -> bytes:
        try:
            return packed(Rows(outlet.target, outlet.position, rows))
        except Exception:  # pickling runs the code of the author's objects
            sent = [found for row in rows if (found := self._sendable(outlet, row)) is not None]
            return packed(Rows(outlet.target, outlet.position, sent))

    def _sendable(self, outlet: Outlet, row: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The row, or the row of failed windows if its accumulator cannot be pickled; None if it cannot be sent."""
        try:
            packed(row)
        except Exception as error:  # as above
            if outlet.form in (Form.WINDOW, Form.COLUMNS) and self._folds(outlet):
                key, start_us, windows, _ = row
                return key, start_us, -windows, failed_window(error)
            node = next(each for each in self.stage.nodes if each.number == outlet.source)
            refused = failed_at(node, error)
            refused.stops = False  # no function failed: a result was refused, as Heron refuses it
            self.failed(refused)
            return None
        return row

    def _folds(self, outlet: Outlet) -> bool:
        return isinstance(self.window_of[outlet.target].operator, WindowFold)

    def _sender(self, outlet: Outlet, rows: list[list[tuple[Any, ...]]]) -> Send:
        if outlet.form.keyed:
            return _by_key(rows, self._plan.groups)
        target = self._plan.stage(outlet.target).head
        if isinstance(target.operator, Repartition) and target.operator.function is not None:
            return partial(_by_function, rows, target.operator.function, target.partitions, target.step)
        return rows[self._slot % len(rows)].append


def _by_key(rows: list[list[tuple[Any, ...]]], groups: int) -> Send:
    """Sends rows to the slot of their key. Slots of strings are remembered: equal ones are the same key."""
    known: dict[str, list[tuple[Any, ...]]] = {}
    slots = len(rows)

    def send(row: tuple[Any, ...]) -> None:
        key = row[0]
        if type(key) is not str:
            rows[key_group((key,), groups) % slots].append(row)
            return
        own = known.get(key)
        if own is None:
            if len(known) >= _SLOTS_KEPT:
                known.clear()
            own = known[key] = rows[key_group((key,), groups) % slots]
        own.append(row)

    return send


def _by_function(
    rows: list[list[tuple[Any, ...]]],
    function: Callable[[Any, int], int],
    partitions: int,
    step: Step,
    row: tuple[Any, ...],
) -> None:
    rows[chosen_partition(function, row[0], partitions, step) % len(rows)].append(row)
