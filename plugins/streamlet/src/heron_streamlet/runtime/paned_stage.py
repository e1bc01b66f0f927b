"""The head of a stage that folds aligned windows: accumulators wait in panes, which a window merges when it closes.

A pane is the time in which all values have the same windows. The state of a key has an accumulator for each window, and
a timer for each. There a row is merged into each of its windows. In a pane it is merged once. A pane is one dict of all
keys, which therefore need neither states nor timers.

The accumulators of a key are in panes or in its state, never in both. They move to the state before a checkpoint, when
a window of the key fails before it closes, and when there are too many. A key whose state is there continues in the
state until all windows of the key have closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from heron_streamlet.failures import OperatorError
from heron_streamlet.runtime.keyed_stage import KeyedStage, States
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.windowing.event_time import START_OF_TIME_US
from heron_streamlet.windowing.failed_window import failed_window
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import KeyedWindow
from heron_streamlet.windowing.window_assignment import WindowRow

__all__ = ["PanedStage"]

_AT_MOST = 16_384
"""Accumulators in panes. A checkpoint waits for some 0.1 s while so many move to the state, which may be larger than
the memory."""

Place = tuple[int, int]
"""The windows of a pane: the start of the first one, and their number."""


class PanedStage(KeyedStage):
    """The head of one task's stage, for a `WindowFold` without early results."""

    operator: WindowFold

    def __init__(self, operator: WindowFold, code: StageCode, states: States) -> None:
        window = operator.window
        self._slide_us, self._span_us = window.slide_us, window.size_us + window.allowed_lateness_us
        self._panes: dict[Place, dict[object, Any]] = {}
        self._count = 0
        self._closed_us = START_OF_TIME_US
        """When the window closed that was the last to leave the panes."""
        self._merge = operator.fold.merger()
        self._merge_in_state = self._merge
        super().__init__(operator, code, states)

    def _receiver(self) -> Callable[[tuple[Any, ...]], object]:
        return self._take

    def _take(self, values: WindowRow) -> None:
        key, start_us, windows, accumulator = values
        if windows < 0:
            self._move_key(key)
            self.fail_windows(key, start_us, -windows, accumulator)
            return
        while windows and start_us + self._span_us <= self.watermark_us:  # the first windows close first
            self.drop_late(key, (start_us, accumulator))
            start_us, windows = start_us + self._slide_us, windows - 1
        if not windows:
            return
        place = start_us, windows
        pane = self._panes.get(place)
        if pane is None:
            pane = self._panes[place] = {}
        if key in pane:
            try:
                pane[key] = self._merge(pane[key], accumulator)
            except Exception as error:
                del pane[key]
                self._count -= 1
                self._move_key(key)
                self.fail_windows(key, start_us, windows, failed_window(error))
        elif self.timers and self.states.get(key) is not None:  # each state has a timer
            self._add_to_state(key, place, accumulator)
        else:
            pane[key] = accumulator
            self._count += 1
            if self._count > _AT_MOST:
                self.move_to_state()

    def guard(self) -> None:
        """`KeyedStage.guard`; the panes have no failed windows."""
        super().guard()
        self._merge_in_state = self.operator.fold.merger()

    def move_to_state(self) -> None:
        """Move all accumulators to the states of their keys: a checkpoint saves nothing else."""
        panes, self._panes, self._count = self._panes, {}, 0
        for place, pane in panes.items():
            opened = self._opened(place)
            for key, accumulator in pane.items():
                self._add_to_state(key, opened, accumulator)

    def keep(self, owns: Callable[[object], bool]) -> None:
        """Forget the keys that now belong to other tasks, as the engine does with their states."""
        for pane in self._panes.values():
            for key in [key for key in pane if not owns(key)]:
                del pane[key]
                self._count -= 1

    def close_due(self) -> list[OperatorError]:
        """`KeyedStage.close_due`."""
        failed: list[OperatorError] = []
        while self._panes:
            start_us = min(self._opened(place)[0] for place in self._panes)
            if start_us + self._span_us > self.watermark_us:
                break
            failed += self._close_window(start_us)
            self._closed_us = start_us + self._span_us
        return failed + super().close_due()

    def _close_window(self, start_us: int) -> list[OperatorError]:
        """Gives the results of a window; the panes whose last window it is are gone then. Returns what failed."""
        window, failed, follow = self.operator.window_at(start_us), list[OperatorError](), self.follow
        keyed, result, time_us = self.operator.keyed, self.operator.fold.result_of(), window.end_us - 1
        keyed_window = partial(tuple.__new__, KeyedWindow)  # half the time of its constructor
        merged, errors = self._merged(start_us)
        for key, accumulator in merged.items():
            try:
                element = keyed_window((key, window)) if keyed else window, result(accumulator)
            except Exception as error:  # of an author's function
                errors[key] = error
                continue
            try:
                follow(element, time_us, START_OF_TIME_US)
            except OperatorError as error:  # of an operator behind it
                failed.append(error)
        return failed + [self.window_failed(key, window, failed_window(error)) for key, error in errors.items()]

    def _merged(self, start_us: int) -> tuple[dict[object, Any], dict[object, Exception]]:
        """The accumulators of a window by key, and what the fold raised for keys that have none."""
        merged: dict[object, Any] = {}
        errors: dict[object, Exception] = {}
        merge, copied = self._merge, self.operator.fold.copied
        for place in sorted(place for place in self._panes if start_us in self._starts(*place)):
            is_last = start_us == self._starts(*place)[-1]
            pane = self._panes.pop(place) if is_last else self._panes[place]
            if is_last:
                self._count -= len(pane)
                if not merged:
                    merged = pane
                    continue
            for key, accumulator in pane.items():
                try:
                    own = accumulator if is_last else copied(accumulator)
                    merged[key] = merge(merged[key], own) if key in merged else own
                except Exception as error:
                    errors.setdefault(key, error)
        for key in errors:
            merged.pop(key, None)
        return merged, errors

    def _starts(self, start_us: int, windows: int) -> range:
        return range(start_us, start_us + windows * self._slide_us, self._slide_us)

    def _opened(self, place: Place) -> Place:
        """The windows of a pane that have not closed."""
        start_us, windows = place
        closed = max(0, (self._closed_us - self._span_us - start_us) // self._slide_us + 1)
        return start_us + closed * self._slide_us, windows - closed

    def _move_key(self, key: object) -> None:
        """Moves a key from the panes to its state, which remembers that windows have failed."""
        for place, pane in self._panes.items():
            if key in pane:
                self._count -= 1
                self._add_to_state(key, self._opened(place), pane.pop(key))

    def _add_to_state(self, key: object, place: Place, accumulator: object) -> None:
        rows: Iterable[tuple[int, object]] = ((place[0], accumulator),)
        if place[1] > 1:
            rows = self.shared_out(self.operator, key, *place, accumulator)
        for start_us, own in rows:
            state = self.states.get(key)
            if state is None:
                self.states.put(key, {start_us: own})
                self.timers.add(start_us + self._span_us, key)
            elif start_us not in state:
                state[start_us] = own
                self.timers.add(start_us + self._span_us, key)
            else:
                try:
                    state[start_us] = self._merge_in_state(state[start_us], own)
                except Exception as error:
                    self.fail_windows(key, start_us, 1, failed_window(error))
