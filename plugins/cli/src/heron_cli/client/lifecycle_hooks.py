"""The observers of lifecycle events, as a command tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from heron.kernel.hooks import Hooks, ThreadedHooks

__all__ = ["announcing"]

_OBSERVERS_S = 2.0  # at the end the command waits so long for those who follow it


@contextmanager
def announcing(entries: Sequence[str]) -> Iterator[Hooks]:
    """Observers by their entries, until the command is done."""
    hooks = ThreadedHooks(entries)
    try:
        yield hooks
    finally:
        hooks.close(_OBSERVERS_S)
