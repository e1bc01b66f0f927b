"""Rows as a pickle that has no class of an author, and whose making runs none of its code."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from heron.author_text import class_name
from heron.spi.task_capture import CAPTURED_TYPES

__all__ = ["UnkeptError", "plain_pickle"]

_PROTOCOL = 5
_MOST_BYTES = 4 << 20  # of one flush, before it is cut off: without a memo, shared values are written again and again


class UnkeptError(Exception):
    """Rows cannot be captured; the text is the reason, in some words."""


def plain_pickle(rows: Sequence[object]) -> bytes:
    """Return the pickle of a list of rows.

    Raises:
        UnkeptError: when a value has another type than `heron.spi.task_capture.CAPTURED_TYPES` says, contains itself,
            is nested too deeply, or the rows are too large.
    """
    output = _Output()
    pickler = _PlainPickler(output, _PROTOCOL)
    pickler.fast = True  # no memo: it costs as much as the rest, and each row is read alone
    try:
        pickler.dump(list(rows))
    except (ValueError, RecursionError) as error:
        reason = "values that contain themselves or are nested too deeply"
        raise UnkeptError(reason) from error
    return b"".join(output)


class _Output(list[bytes]):
    """What was written."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def write(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            reason = f"more than {_MOST_BYTES >> 20} MiB in one flush"
            raise UnkeptError(reason)
        self.append(data)


class _PlainPickler(pickle.Pickler):
    """The interpreter's pickler asks here for every object of another than its plain types."""

    def reducer_override(self, obj: object) -> str:
        kind = type(obj)
        if kind in CAPTURED_TYPES or (kind is type and obj in CAPTURED_TYPES):
            decide_as_usual: str = NotImplemented
            return decide_as_usual
        reason = class_name(obj)
        raise UnkeptError(reason)
