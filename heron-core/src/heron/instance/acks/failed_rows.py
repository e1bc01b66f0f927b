"""Why the rows of received batches failed, until their fails are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.author_text import error_text, raised_lines
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import FailureCause, encode_cause, stack_text

__all__ = ["FailedRows"]

_MOST_CAUSES = 1_000
_MOST = 10_000  # errors between two flushes; further rows fail without their text


class FailedRows:
    """The errors of rows by batch and place. A row without one was failed by a call of `fail`."""

    def __init__(self, component: str, task_id: int) -> None:
        self._component = component
        self._task_id = task_id
        self.plain = encode_cause(FailureCause(component, task_id))
        self._errors: dict[tuple[int, int], bytes] = {}
        self._causes: dict[tuple[object, ...], bytes] = {}  # by message and lines
        self._stacks: dict[tuple[object, ...], str] = {}  # by lines: to format them costs more than all the rest

    def blame(self, batch: TrackedBatch, places: Iterable[int], doing: str, error: BaseException) -> None:
        """These tuples of a batch fail because of an exception."""
        cause = self.cause(doing, error)
        for place in places:
            if len(self._errors) < _MOST:
                self._errors[id(batch), 0 if batch.is_unit else place] = cause

    def take(
        self, failed: Sequence[tuple[TrackedBatch, list[int]]]
    ) -> dict[bytes, list[tuple[TrackedBatch, list[int]]]]:
        """These failed rows by their cause; forgets all errors."""
        by_cause: dict[bytes, list[tuple[TrackedBatch, list[int]]]] = {}
        for batch, places in failed:
            of_batch: dict[bytes, list[int]] = {}
            for place in places:
                of_batch.setdefault(self._errors.get((id(batch), place), self.plain), []).append(place)
            for cause, its_places in of_batch.items():
                by_cause.setdefault(cause, []).append((batch, its_places))
        self._errors.clear()
        return by_cause

    def cause(self, doing: str, error: BaseException) -> bytes:
        """The document of an exception; the same for the same message from the same lines."""
        place, text = (doing, type(error), *raised_lines(error)), error_text(error)
        if error.__cause__ is not None or error.__context__ is not None or hasattr(error, "__notes__"):
            return self._document(doing, error)  # the traceback has more than lines and message
        cause = self._causes.get((text, place))
        if cause is None:
            self._stacks = self._stacks if len(self._stacks) < _MOST_CAUSES else {}
            self._causes = self._causes if len(self._causes) < _MOST_CAUSES else {}
            stack = self._stacks.get(place)
            if stack is None:
                stack = self._stacks[place] = stack_text(error, text)
            cause = self._causes[text, place] = self._document(
                doing, error, f"{stack}{text}\n" if stack and text else ""
            )
        return cause

    def _document(self, doing: str, error: BaseException, trace: str = "") -> bytes:
        return encode_cause(FailureCause.of(self._component, self._task_id, doing, error, trace))
