"""Why the rows of received batches failed, until their fails are sent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from heron.author_text import error_text
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import CauseTemplate, FailureCause, encode_cause
from heron.instance.user.failure_places import FailurePlace, FailurePlaces
from heron.ipc.frames.tracking import Cause

__all__ = ["FailedRows"]

_MOST = 10_000  # errors between two flushes; further rows fail without their text

_encode = msgspec.json.Encoder().encode


class FailedRows:
    """The errors of rows by batch and place. A row without one was failed by a call of `fail`.

    To format and encode a traceback costs more than all the rest, so the `places` of errors keep the documents.
    """

    def __init__(self, component: str, task_id: int, places: FailurePlaces) -> None:
        self._component = component
        self._task_id = task_id
        self.plain = encode_cause(FailureCause(component, task_id))
        self._errors: dict[TrackedBatch, dict[int, Cause]] = {}
        self._room = _MOST
        self.places = places

    def blame(self, batch: TrackedBatch, place: int, doing: str, error: BaseException, at: FailurePlace) -> None:
        """A tuple of a batch fails because of an exception. The first error of a row counts."""
        if not self._room:
            return
        self._room -= 1
        errors = self._errors.get(batch)
        if errors is None:
            errors = self._errors[batch] = {}
        errors.setdefault(0 if batch.is_unit else place, self.cause(doing, error, at))

    def blame_all(self, batch: TrackedBatch, doing: str, error: BaseException, at: FailurePlace) -> None:
        """All tuples of a batch fail because of an exception."""
        places = range(min(batch.rows, self._room))
        if places:
            self._room -= len(places)
            cause = self.cause(doing, error, at)
            self._errors[batch] = dict.fromkeys(places, cause) | self._errors.get(batch, {})

    def take(self, failed: Sequence[tuple[TrackedBatch, list[int]]]) -> list[Cause]:
        """The cause of each of these failed rows, in their order; forgets all errors."""
        errors, self._errors, self._room = self._errors, {}, _MOST
        return [
            of_batch.get(place, self.plain)
            for batch, places in failed
            for of_batch in (errors.get(batch, {}),)
            for place in places
        ]

    def cause(self, doing: str, error: BaseException, at: FailurePlace) -> Cause:
        """Why a tuple failed, by its exception."""
        text = error_text(error)
        try:  # does its traceback tell of no other exception, and of no notes?
            alone = error.__cause__ is None and error.__context__ is None and not hasattr(error, "__notes__")
        except Exception:  # of an author's `__getattr__`
            alone = False
        if alone:
            template = at.template
            if template is None:
                template = CauseTemplate.of(self._component, self._task_id, doing, error, text)
                if template.longest:
                    at.template = template
            document, longest = template
            if 0 < len(text) <= longest:
                try:
                    return document, _encode(text)
                except UnicodeEncodeError:  # it is told escaped
                    pass
        return encode_cause(FailureCause.of(self._component, self._task_id, doing, error))
