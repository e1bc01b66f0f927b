"""Why the rows of received batches failed, until their fails are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.author_text import error_text
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import FailureCause, encode_cause

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
        self._causes: dict[tuple[object, ...], bytes] = {}  # the traceback costs more than all the rest

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
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code, trace.tb_lineno))
            trace = trace.tb_next
        key = (doing, type(error), error_text(error), *frames)
        alone = error.__cause__ is None and error.__context__ is None  # else the traceback has their messages too
        cause = self._causes.get(key) if alone else None
        if cause is None:
            if len(self._causes) >= _MOST_CAUSES:
                self._causes.clear()
            cause = encode_cause(FailureCause.of(self._component, self._task_id, doing, error))
            if alone:
                self._causes[key] = cause
        return cause
