"""Reads the values of captures: pickles that hold no other class than those of `heron.spi.task_capture`.

A file may come from anywhere. This reader knows only the listed names, so a pickle that calls something else fails.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence

from heron.errors import HeronError
from heron.spi.task_capture import CAPTURED_TYPES

__all__ = ["LoadFileError", "packed_row", "read_plain"]

_NAMES = {(each.__module__, each.__qualname__): each for each in CAPTURED_TYPES}


class LoadFileError(HeronError):
    """A file is not a captured load, is damaged, has another version, or cannot be read or written."""


def read_plain(data: bytes) -> object:
    """Return the value of a pickle.

    Raises:
        LoadFileError: when it is damaged, or names anything but the types of `CAPTURED_TYPES`.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except LoadFileError:
        raise
    except Exception as error:  # a damaged pickle may raise any
        msg = f"values of {len(data)} bytes cannot be read: {type(error).__name__}"
        raise LoadFileError(msg) from error


def packed_row(values: Sequence[object]) -> bytes:
    """Return the pickle of the values of one tuple."""
    return pickle.dumps(tuple(values), 5)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> object:
        found = _NAMES.get((module, name))
        if found is None:
            msg = f"values with the name {module[:80]}.{name[:80]}, which is none of a capture"
            raise LoadFileError(msg)
        return found
