"""The head of a stage that folds aligned windows: accumulators wait in panes, which a window merges when it closes.

A pane is the time in which all values have the same windows. The state of a key has an accumulator for each window, and
a timer for each. There a row is merged into each of its windows. In a pane it is merged once. A pane is one dict of all
keys, which need neither states nor timers.

States have what panes gave them: before a checkpoint, which saves nothing else, and when there was too much. They also
remember which windows have failed. A window that closes has the accumulators of both, first those of the state, which
are older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from heron_streamlet.failures import OperatorError
from heron_streamlet.runtime.keyed_stage import KeyedStage, States
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.windowing.event_time import START_OF_TIME_US
from heron_streamlet.windowing.failed_window import FailedWindow, failed_window
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import KeyedWindow
from heron_streamlet.windowing.window_assignment import WindowRow

__all__ = ["PanedStage"]

Place = tuple[int, int]
"""The windows of a pane: the start of the first one, and their number."""


class PanedStage(KeyedStage):
    """The head of one task's stage, for a `WindowFold` without early results.

    Panes have `at_most` accumulators.
    """

    operator: WindowFold

    def __init__(self, operator: WindowFold, code: StageCode, states: States, *, at_most: int) -> None:
        window, self._fold = operator.window, operator.fold
        self._slide_us, self._span_us = window.slide_us, window.size_us + window.allowed_lateness_us
        self._merge = self._fold.merger()
        self._panes: dict[Place, dict[object, Any]] = {}
        self._count = 0
        self._at_most = at_most
        self._closed_us = START_OF_TIME_US
        """When the last window closed."""
        super().__init__(operator, code, states)

    def _receiver(self) -> Callable[[tuple[Any, ...]], object]:
        return self._take

    def _take(self, values: WindowRow) -> None:
        key, start_us, windows, accumulator = values
        if windows < 0:
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
        if key not in pane:
            pane[key] = accumulator
            self._count += 1
            if self._count > self._at_most:
                self.move_to_state()
            return
        try:
            pane[key] = self._merge(pane[key], accumulator)
        except Exception as error:
            del pane[key]
            self._count -= 1
            self.fail_windows(key, start_us, windows, failed_window(error))

    def move_to_state(self) -> None:
        """Move all accumulators to the states of their keys."""
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
        while (close_us := self._next_close_us()) <= self.watermark_us:
            failed += self._close_window(close_us)
            self._closed_us = close_us
        return failed

    def _next_close_us(self) -> int:
        starts_us = [self._opened(place)[0] for place in self._panes]
        return min([self.timers.next_us, *(start_us + self._span_us for start_us in starts_us)])

    def _close_window(self, close_us: int) -> list[OperatorError]:
        """Gives the results of the window that closes at this time; returns what failed."""
        window, failed, follow = self.operator.window_at(close_us - self._span_us), list[OperatorError](), self.follow
        keyed, result, time_us = self.operator.keyed, self._fold.result_of(), window.end_us - 1
        keyed_window = partial(tuple.__new__, KeyedWindow)  # half the time of its constructor
        merged, errors = self._merged(window.start_us)
        self._merge_states(close_us, merged, errors)
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
        """What panes have of a window, by key, and what the fold raised for keys that have failed.

        The panes whose last window it is are gone then.
        """
        merged: dict[object, Any] = {}
        errors: dict[object, Exception] = {}
        merge, copied = self._merge, self._fold.copied
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

    def _merge_states(self, close_us: int, merged: dict[object, Any], errors: dict[object, Exception]) -> None:
        """Adds what states have of the window that closes at this time, and takes it out of them."""
        for key in self.timers.due(close_us):
            for _, accumulator in self.take_closed(key, close_us):
                if type(accumulator) is FailedWindow:  # reported when it failed
                    merged.pop(key, None)
                    errors.pop(key, None)
                elif key not in errors:
                    try:
                        merged[key] = self._merge(accumulator, merged[key]) if key in merged else accumulator
                    except Exception as error:
                        del merged[key]
                        errors[key] = error

    def _starts(self, start_us: int, windows: int) -> range:
        return range(start_us, start_us + windows * self._slide_us, self._slide_us)

    def _opened(self, place: Place) -> Place:
        """The windows of a pane that have not closed."""
        start_us, windows = place
        closed = max(0, (self._closed_us - self._span_us - start_us) // self._slide_us + 1)
        return start_us + closed * self._slide_us, windows - closed

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
            elif type(state[start_us]) is not FailedWindow:
                try:
                    state[start_us] = self._merge(state[start_us], own)
                except Exception as error:
                    self.fail_windows(key, start_us, 1, failed_window(error))
