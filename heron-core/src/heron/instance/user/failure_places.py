"""Where user code fails: failures of one class at the same lines share what was made for the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded where topology.replay.attempts is set
    from heron.instance.replay.failure_cause import CauseTemplate

__all__ = ["SHOWN", "CountedFailure", "FailurePlace", "FailurePlaces"]

SHOWN = 2
"""Failures of one kind: the first is shown with its traceback, and the second says that the others are only counted."""

_MOST = 1_000


class CountedFailure:
    """A distinct failure: what was called, the class of the exception and the author's line; how often it happened."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0


class FailurePlace:
    """What was called, the class of its exception, and the code and the instruction of each frame.

    `counted` is set when a failure of this place was shown, and `template` when one was told to a spout.
    """

    __slots__ = ("counted", "template")

    def __init__(self) -> None:
        self.counted: CountedFailure | None = None
        self.template: CauseTemplate | None = None

    def counts(self) -> bool:
        """Counts a failure and returns true, unless it has to be shown: the first one is, and a note on the second."""
        counted = self.counted
        if counted is None or counted.count < SHOWN:
            return False
        counted.count += 1
        return True


class FailurePlaces:
    """The places of a task. Belongs to the task thread."""

    def __init__(self) -> None:
        self._by_code: dict[tuple[object, ...], FailurePlace] = {}
        self._by_id: dict[tuple[object, ...], FailurePlace] = {}  # the keys above keep the objects of these ids

    def of(self, doing: str, error: BaseException, *, by_caller: bool = False) -> FailurePlace:
        """The place of an exception: the same for equal lines.

        With `by_caller`, the first frame is the caller's, which makes this call at one place, and is left out.
        """
        first = error.__traceback__
        if by_caller and first is not None:
            first = first.tb_next or first
        by_id: tuple[object, ...]
        if first is not None and first.tb_next is None:  # the usual case: the call itself raised
            by_id = (doing, type(error), id(first.tb_frame.f_code), first.tb_lasti)
        else:
            by_id = (doing, type(error), *_instructions(first))
        place = self._by_id.get(by_id)
        return place if place is not None else self._add(by_id, doing, type(error), first)

    def _add(self, by_id: tuple[object, ...], doing: str, kind: type, trace: TracebackType | None) -> FailurePlace:
        """Compares the code itself, because an author may compile the same text for each tuple. A hash takes long."""
        by_code: list[object] = [doing, kind]
        while trace is not None:
            code = trace.tb_frame.f_code
            by_code += (code, code.co_filename, trace.tb_lasti)  # equal code may be of two files
            trace = trace.tb_next
        place = self._by_code.get(key := tuple(by_code))
        if place is None:
            if len(self._by_code) >= _MOST:
                self._by_code.clear()
                self._by_id.clear()
            place = self._by_code[key] = self._by_id[by_id] = FailurePlace()
        return place


def _instructions(trace: TracebackType | None) -> Iterator[int]:
    """The code and the instruction of each frame."""
    while trace is not None:
        yield id(trace.tb_frame.f_code)
        yield trace.tb_lasti
        trace = trace.tb_next
