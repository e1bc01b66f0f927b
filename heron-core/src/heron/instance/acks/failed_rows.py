"""Why the rows of received batches failed, until their fails are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.author_text import error_text, raised_lines
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import CauseTemplate, FailureCause, encode_cause

__all__ = ["FailedRows"]

_MOST_TEMPLATES = 1_000
_MOST = 10_000  # errors between two flushes; further rows fail without their text


class FailedRows:
    """The errors of rows by batch and place. A row without one was failed by a call of `fail`."""

    def __init__(self, component: str, task_id: int) -> None:
        self._component = component
        self._task_id = task_id
        self.plain = encode_cause(FailureCause(component, task_id))
        self._errors: dict[tuple[int, int], bytes] = {}
        # by the lines of the traceback: to format and encode them costs more than all the rest
        self._templates: dict[tuple[object, ...], CauseTemplate] = {}

    def blame(self, batch: TrackedBatch, places: Iterable[int], doing: str, error: BaseException) -> None:
        """These tuples of a batch fail because of an exception."""
        cause = self.cause(doing, error)
        for place in places:
            if len(self._errors) < _MOST:
                self._errors[id(batch), 0 if batch.is_unit else place] = cause

    def take(self, failed: Sequence[tuple[TrackedBatch, list[int]]]) -> list[bytes]:
        """The cause of each of these failed rows, in their order; forgets all errors."""
        errors, self._errors = self._errors, {}
        return [errors.get((id(batch), place), self.plain) for batch, places in failed for place in places]

    def cause(self, doing: str, error: BaseException) -> bytes:
        """The document of an exception."""
        text = error_text(error)
        if error.__cause__ is None and error.__context__ is None and not hasattr(error, "__notes__"):
            place = (doing, type(error), *raised_lines(error))
            template = self._templates.get(place)
            if template is None:
                self._templates = self._templates if len(self._templates) < _MOST_TEMPLATES else {}
                made = CauseTemplate(self._component, self._task_id, doing, error, text)
                template = self._templates[place] = made
            if (document := template.document(text)) is not None:
                return document
        return encode_cause(FailureCause.of(self._component, self._task_id, doing, error))
