"""Why the rows of received batches failed, until their fails are sent. Needs numpy at the first fail."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from heron.driver_kit.loading import load_object
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import FailureCause, encode_cause

if TYPE_CHECKING:
    from heron.instance.acks.batch_arrays import BatchAcks

__all__ = ["FailedRows"]

_MOST = 10_000  # errors between two flushes; further rows fail without their text


class FailedRows:
    """The errors of rows by batch and place. A row without one was failed by a call of `fail`."""

    def __init__(self, component: str, task_id: int) -> None:
        self._component = component
        self._task_id = task_id
        self._plain = encode_cause(FailureCause(component, task_id))
        self._errors: dict[tuple[int, int], bytes] = {}

    def blame(self, batch: TrackedBatch, places: Iterable[int], doing: str, error: BaseException) -> None:
        """These tuples of a batch fail because of an exception."""
        cause = encode_cause(FailureCause.of(self._component, self._task_id, doing, error))
        for place in places:
            if len(self._errors) < _MOST:
                self._errors[id(batch), 0 if batch.is_unit else place] = cause

    def segments(self, failed: Sequence[tuple[TrackedBatch, list[int]]]) -> list[bytes]:
        """The CAUSE segments of failed rows; forgets them."""
        by_cause: dict[bytes, list[tuple[TrackedBatch, list[int]]]] = {}
        for batch, places in failed:
            for place in places:
                cause = self._errors.get((id(batch), place), self._plain)
                by_cause.setdefault(cause, []).append((batch, [place]))
        self._errors.clear()
        return [each for cause, rows in by_cause.items() for each in _batch_acks().cause_segments(rows, cause)]


@functools.cache
def _batch_acks() -> BatchAcks:
    return cast("type[BatchAcks]", load_object("heron.instance.acks.batch_arrays:BatchAcks", "causes of fails"))()
