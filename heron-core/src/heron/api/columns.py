"""Columns as components exchange them: what `emit_columns` accepts, and how columns are compressed on the wire."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Protocol, TypeAlias, cast

from heron.errors import ConfigError, known

__all__ = ["COMPRESSIONS", "Columns", "SupportsArrowArray", "SupportsArrowStream", "check_depth", "compression_of"]

COMPRESSIONS = ("none", "lz4", "zstd")
"""The compressions of columns on the wire."""


_DEEPEST = 64  # far more than types of columns have, and far less than fills the stack
_SEQUENCES: tuple[type[object], ...] = (list, tuple, set, frozenset, deque)
_NESTED: tuple[type[object], ...] = (*_SEQUENCES, dict, type({}.keys()), type({}.values()), type({}.items()))
"""What Arrow follows inside a column, beside arrays of NumPy."""


class SupportsArrowArray(Protocol):
    """An object with Arrow's C data interface for one batch, such as `pyarrow.RecordBatch`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules of the schema and the array."""
        ...


class SupportsArrowStream(Protocol):
    """An object with Arrow's C stream interface, such as `pyarrow.Table` and the data frames of pandas and Polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of a stream of batches."""
        ...


Columns: TypeAlias = SupportsArrowArray | SupportsArrowStream | Mapping[str, object]
"""What `emit_columns` accepts: a record batch, a table, a data frame, or a mapping of field names to arrays."""


def compression_of(value: str, stream: str) -> str:
    """Return the compression of a stream's columns by a value of ``topology.columns.compression``.

    Args:
        value: one of `COMPRESSIONS` for all streams of a component, or ``STREAM: COMPRESSION, ...`` for some.
        stream: the name of the stream; a stream that is not named is not compressed.

    Raises:
        ConfigError: when the value names another compression.
    """
    chosen = "none"
    for part in value.split(","):
        name, colon, compression = (each.strip() for each in part.rpartition(":"))
        if compression not in COMPRESSIONS:
            msg = f"unknown compression {compression!r} of columns; known: {known(COMPRESSIONS)}"
            raise ConfigError(msg)
        if not colon or name == stream:
            chosen = compression
    return chosen


def check_depth(values: Iterable[object]) -> None:
    """Refuse values of a column that contain themselves: Arrow follows them until the process has no stack left.

    The values must not be an iterator, which would be empty afterwards. An array of numbers costs nothing, and other
    values one look at the type of each.

    Raises:
        ValueError: when they contain themselves, or are nested in more than 64 values.
    """
    if not _may_hold_objects(values):
        return
    array: type[object] = getattr(sys.modules.get("numpy"), "ndarray", deque)  # NumPy is not imported for it
    followed = (*_NESTED, array)
    held: Callable[[], Iterable[object]] = partial(_entries, values, array)
    for _ in range(_DEEPEST):
        # level by level, and each container of a level once: a container may hold another one many times
        nested = {each for each in set(map(type, held())) if issubclass(each, followed)}
        if not nested:
            return
        level = {id(each): each for each in held() if type(each) in nested}.values()
        plain = nested.issubset(_SEQUENCES)
        entries = level if plain else [_entries(each, array) for each in level]
        held = partial(chain.from_iterable, cast("Iterable[Iterable[object]]", entries))
    msg = f"it contains itself, or is nested in more than {_DEEPEST} values; make it flatter"
    raise ValueError(msg)


def _entries(container: object, array: type[object]) -> Iterable[object]:
    """What Arrow may follow in a container, an array of NumPy for one."""
    if issubclass(type(container), array) and not _may_hold_objects(container):
        return ()
    return cast("Iterable[object]", container.values() if isinstance(container, dict) else container)


def _may_hold_objects(values: object) -> bool:
    """Whether it is anything but an array of numbers, texts or times of NumPy or pandas."""
    return str(getattr(values, "dtype", "object")) == "object"
