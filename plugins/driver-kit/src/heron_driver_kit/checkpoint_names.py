"""The names of objects in a checkpoint store, checked before a driver uses them in a path, a key or a URL.

Names also come back from manifests and folders that other people can write to. So they are checked strictly: no name
can lead out of the place of the store.
"""

from __future__ import annotations

import re

from heron.errors import CheckpointError, TornCheckpointError

__all__ = ["check_name", "check_prefix", "check_range", "is_name"]

_PART = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PART_CHARACTERS = 200
_FEWEST_PARTS, _MOST_PARTS = 2, 6


def is_name(text: str) -> bool:
    """Return whether the text is a name of an object, as `heron.spi.checkpoint.CheckpointStore` describes it."""
    return _has_parts(text, _FEWEST_PARTS, _MOST_PARTS)


def check_name(name: str) -> None:
    """Raises CheckpointError when `name` is not the name of an object."""
    if not is_name(name):
        raise CheckpointError(_refused("checkpoint object", name, _FEWEST_PARTS, _MOST_PARTS))


def check_prefix(prefix: str) -> None:
    """Raises CheckpointError when `prefix` is not the beginning of a name: its first parts."""
    if not _has_parts(prefix, 1, _MOST_PARTS - 1):
        raise CheckpointError(_refused("prefix of checkpoint objects", prefix, 1, _MOST_PARTS - 1))


def check_range(name: str, start: int, size_bytes: int | None, has_bytes: int | None = None) -> None:
    """Raises CheckpointError when the range is not in an object of `has_bytes` (None: any size).

    If the object is too short, the error is a TornCheckpointError.
    """
    if start < 0 or (size_bytes is not None and size_bytes < 0):
        msg = f"checkpoint object {name}: {size_bytes} bytes at {start} are no range; both numbers are at least 0"
        raise CheckpointError(msg)
    if has_bytes is not None and start + (size_bytes or 0) > has_bytes:
        msg = (
            f"checkpoint object {name}: has {has_bytes} bytes, {size_bytes or 0} bytes at {start} are wanted; it was "
            "cut or replaced, use another checkpoint"
        )
        raise TornCheckpointError(msg)


def _has_parts(text: str, fewest: int, most: int) -> bool:
    parts = text.split("/")
    return fewest <= len(parts) <= most and all(
        len(each) <= _PART_CHARACTERS and _PART.fullmatch(each) for each in parts
    )


def _refused(what: str, text: str, fewest: int, most: int) -> str:
    return (
        f"{what} {text!r:.80} is refused; use {fewest} to {most} parts with '/' between them, each of at most "
        f"{_PART_CHARACTERS} letters, digits, '_', '-' and inner dots"
    )
