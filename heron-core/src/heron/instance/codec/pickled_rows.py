"""Batches pickled without a memo where that is smaller, and row by row with one where objects are shared.

Without its memo the pickler writes an object as often as it is referred to: a list that holds the same list twice,
twenty levels deep, becomes a million lists. Whether objects are shared is looked at only in a batch of more than 1 MiB,
and once: the sizes of its rows with a memo say how long the batch may become without one.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Final

__all__ = ["PROTOCOL", "RowPickles", "SharedError", "columns_of", "pickled", "row_pickles", "without_cycle"]

PROTOCOL: Final = 5
_LOOK_AT_BYTES = 1 << 20  # twice the default size of a batch: larger batches are split, or have one row
_WORTH = 1.05  # without a memo it may be that much larger, since it is smaller for the receiver's time
_ATOMS = frozenset({str, bytes, bytearray, int, float, complex, bool, type(None)})


class SharedError(Exception):
    """A batch is much smaller with a memo: `rows` are the pickles of its rows."""

    def __init__(self, rows: list[bytes]) -> None:
        self.rows = rows


class _Output(list[bytes]):
    """What the pickler has written: one part for each 64 KiB and each large value; a small batch has one part."""

    columns: Sequence[Sequence[object]] = ()
    rows: list[bytes] | None = None
    limit_bytes: float = _LOOK_AT_BYTES

    def write(self, data: bytes | pickle.PickleBuffer) -> None:
        self.append(bytes(data))  # the same object, unless it is a large buffer, such as that of an array
        if len(self) > 1 and sum(map(len, self)) > self.limit_bytes:
            self._look()

    def _look(self) -> None:
        if self.rows is not None:
            raise SharedError(self.rows)
        if not _may_share(self.columns):
            self.limit_bytes = float("inf")
            return
        rows = self.columns[0] if len(self.columns) == 1 else list(zip(*self.columns, strict=True))
        self.rows = [pickle.dumps(row, PROTOCOL) for row in rows]
        self.limit_bytes = _LOOK_AT_BYTES + _WORTH * sum(map(len, self.rows))
        if len(self.rows) == 1:
            self.limit_bytes -= _LOOK_AT_BYTES
        if sum(map(len, self)) > self.limit_bytes:
            raise SharedError(self.rows)


def _may_share(columns: Sequence[Sequence[object]]) -> bool:
    """Whether a row may refer to an object twice: it has a container, or the same text in two fields."""
    if any(type(value) not in _ATOMS for column in columns for value in column):
        return True
    return len(columns) > 1 and any(len(set(map(id, row))) < len(row) for row in zip(*columns, strict=True))


def pickled(columns: Sequence[Sequence[object]]) -> bytes:
    """The columns without a memo.

    Raises:
        SharedError: when they are much smaller with one.
        ValueError: when a value contains itself (a RecursionError for some classes).
    """
    output = _Output()
    output.columns = columns
    pickler = pickle.Pickler(output, PROTOCOL)
    pickler.fast = True
    pickler.dump(columns)
    return output[0] if len(output) == 1 else b"".join(output)


class RowPickles:
    """Arrives as the columns whose rows it holds, each pickled with its own memo."""

    __slots__ = ("_arity", "_rows")

    def __init__(self, rows: list[bytes], arity: int) -> None:
        self._rows = rows
        self._arity = arity

    def __reduce__(self) -> tuple[object, ...]:
        return columns_of, (self._rows, self._arity)


def columns_of(rows: list[bytes], arity: int) -> list[Sequence[object]]:
    """The columns of rows that were pickled one by one."""
    values = [pickle.loads(row) for row in rows]  # noqa: S301  # only from the topology itself
    return [values] if arity == 1 else list(zip(*values, strict=True))


def row_pickles(payload: bytes) -> tuple[list[bytes], int] | None:
    """The pickles of the rows and the number of fields, if the payload is made of them; decodes no value."""
    try:
        found = _RowReader(io.BytesIO(payload)).load()
    except Exception:
        return None
    return found if isinstance(found, _Rows) else None


class _Rows(tuple[list[bytes], int]):
    """The arguments of `columns_of`."""

    __slots__ = ()


class _RowReader(pickle.Unpickler):
    """Reads the call of `columns_of` in a payload, and refuses any other."""

    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) != (columns_of.__module__, columns_of.__name__):
            raise pickle.UnpicklingError(name)
        return _rows_as_sent


def _rows_as_sent(rows: list[bytes], arity: int) -> _Rows:
    return _Rows((rows, arity))


class _InnerPickle:
    """Arrives as the value whose pickle it holds."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple[object, ...]:
        return pickle.loads, (self._data,)


def without_cycle(value: object) -> object:
    """The value, or its pickle with a memo if it contains itself or shares objects.

    Raises:
        ValueError: when it is nested too deeply.
    """
    try:
        pickled([[value]])
    except (ValueError, RecursionError, SharedError):
        try:
            return _InnerPickle(pickle.dumps(value, PROTOCOL))
        except RecursionError as error:
            msg = "it is nested too deeply for pickle; make it flatter, for example a list of its parts"
            raise ValueError(msg) from error
    return value
