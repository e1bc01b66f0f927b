"""Early results: what windows would give if they closed now. `WindowedStreamlet.early` asks for them.

An operator `Early` stands in the stage of its windowed operator, behind an output of its own. So the results of the
windows are the same with and without it, and a stage without it does not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from heron.errors import UsageError
from heron_streamlet.failures import OperatorError
from heron_streamlet.runtime.keyed_stage import KeyedStage, States
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.windowing.event_time import START_OF_TIME_US
from heron_streamlet.windowing.failed_window import FailedWindow
from heron_streamlet.windowing.keyed_operators import FoldedWindows, KeyedOperator
from heron_streamlet.windowing.window import WindowResult

__all__ = ["EarlyKeyedStage", "keyed_stage"]


def keyed_stage(operator: KeyedOperator, code: StageCode, states: States, *, repeats: bool) -> KeyedStage:
    """The head of a stage; with `repeats`, windows that were restored give their early results again."""
    if isinstance(operator, FoldedWindows) and code.stage.early_nodes:
        return EarlyKeyedStage(operator, code, states, repeats=repeats)
    return KeyedStage(operator, code, states)


@dataclass(slots=True)
class _Reader:
    """An operator `Early`.

    Attributes:
        follow: takes its results, with event time and bound.
        changed: the starts of the windows that have changed since its last results, by key.
        due_s: when it gives the next ones.
    """

    every_s: float
    follow: Callable[[Any, int, int], None]
    changed: dict[object, dict[int, None]] = field(default_factory=dict)
    due_s: float = float("-inf")


class EarlyKeyedStage(KeyedStage):
    """Remembers which windows change, and gives their results so far when they are due."""

    operator: FoldedWindows

    def __init__(self, operator: FoldedWindows, code: StageCode, states: States, *, repeats: bool) -> None:
        super().__init__(operator, code, states)
        self._failed: list[OperatorError] = []
        self._readers = [
            _Reader(early.every_us / 1_000_000, StageCode(code.stage, code.host).behind(node))
            for node, early in code.stage.early_nodes
        ]
        for key, state in states.items() if repeats else ():
            self._note(key, operator.starts(state))

    def add(self, key: object, row: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """`KeyedStage.add`."""
        after = super().add(key, row)
        if after is not None:
            self._note(key, (self.operator.changed(after, row),))
        return after

    def reach(self, watermark_us: int) -> list[OperatorError]:
        """`KeyedStage.reach`."""
        return super().reach(watermark_us) + self._failures()

    def close(self, key: object, window: Any) -> list[OperatorError]:  # noqa: ANN401
        """`KeyedStage.close`; the final result is also the last of the early ones."""
        failed: list[OperatorError] = []
        results = self.closing(key, window, failed)
        for element, time_us in results:
            for reader in self._readers:
                self._give(reader, element, time_us, final=True)
        for element, time_us in results:
            try:
                self.follow(element, time_us, START_OF_TIME_US)
            except OperatorError as error:  # of an operator behind it
                failed.append(error)
        return failed

    def give_early(self, now_s: float) -> list[OperatorError]:
        """`KeyedStage.give_early`."""
        for reader in self._readers:
            if reader.due_s <= now_s:
                reader.due_s = now_s + reader.every_s
                changed, reader.changed = reader.changed, {}
                for key, starts in changed.items():
                    self._give_windows(reader, key, starts)
        return self._failures()

    def _note(self, key: object, starts: Iterable[int]) -> None:
        for reader in self._readers:
            reader.changed.setdefault(key, {}).update(dict.fromkeys(starts))

    def _give_windows(self, reader: _Reader, key: object, starts: Iterable[int]) -> None:
        try:
            state = self.states.get(key)
        except UsageError:  # an update gave the key to another task
            return
        given = set()
        for start_us in starts if state is not None else ():
            try:
                found = self.operator.so_far(state, start_us)
                if found is None or found[0] in given:  # closed; or sessions that have become one
                    continue
                if type(found[1]) is FailedWindow:  # it has no result, and its last early one is not repeated
                    continue
                given.add(found[0])
                results = list(self.operator.results(key, found))
            except Exception as error:  # of an author's function
                self._failed.append(self.code.located(error))
                continue
            for element, time_us in results:
                self._give(reader, element, time_us, final=False)

    def _give(self, reader: _Reader, element: Any, time_us: int, *, final: bool) -> None:  # noqa: ANN401  # of a fold
        """A result that fails here is lost alone: the stream of final results has its own."""
        place, result = element
        try:
            reader.follow(WindowResult(place, result, final), time_us, START_OF_TIME_US)
        except OperatorError as error:
            self._failed.append(error)

    def _failures(self) -> list[OperatorError]:
        failed, self._failed = self._failed, []
        return failed
