"""Faults of the store or server behind a driver, and functions that produce them."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from heron_testing.relay import Relay

__all__ = ["FULL_BYTES", "Fault", "Faults", "file_faults", "full_files", "path_away", "relay_faults"]

Fault = Callable[[], AbstractContextManager[None]]
"""Makes a context manager; the fault lasts for its ``with`` block."""

FULL_BYTES = 64 * 1024
"""The size limit of files under `full_files`, in bytes; a test writes more than that."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that the test of a driver offers. The flags of the driver say which faults its suite needs.

    The flag ``files`` needs `away` and `full`. The flag ``server`` needs `away`, `silent` and `answers_lost`.
    """

    away: Fault | None = None
    """The store is unreachable: connections are refused, or the folder is gone."""
    full: Fault | None = None
    """No file grows above `FULL_BYTES`, so a larger write fails in its middle."""
    silent: Fault | None = None
    """The server takes requests and never answers; existing connections stay open."""
    answers_lost: Fault | None = None
    """The server carries out requests, and its answers are lost."""


def file_faults(root: Path) -> Faults:
    """Return the faults for a driver that keeps files below `root`: `away` and `full`."""
    return Faults(away=lambda: path_away(root), full=full_files)


def relay_faults(relay: Relay) -> Faults:
    """Return the faults for a driver that reaches its server through `relay`: `away`, `silent` and `answers_lost`."""
    return Faults(
        away=lambda: _relayed(relay, refuses=True),
        silent=lambda: _relayed(relay, swallows=True),
        answers_lost=lambda: _relayed(relay, swallows_answers=True),
    )


@contextmanager
def full_files(limit_bytes: int = FULL_BYTES) -> Iterator[None]:
    """Let no file of this process grow above `limit_bytes` in the block.

    A larger write fails with EFBIG; a full disk would give ENOSPC.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def path_away(path: Path) -> Iterator[None]:
    """Move the folder away and put a file in its place in the block. Also works as root, which ignores file modes."""
    elsewhere = path.with_name(f"{path.name}-elsewhere")
    existed = path.exists()
    if existed:
        path.rename(elsewhere)
    path.write_text("a file where a folder belongs")
    try:
        yield
    finally:
        path.unlink()
        if existed:
            elsewhere.rename(path)


@contextmanager
def _relayed(relay: Relay, **flags: bool) -> Iterator[None]:
    for name, value in flags.items():
        setattr(relay, name, value)
    if relay.refuses:
        relay.cut()
    try:
        yield
    finally:
        for name in flags:
            setattr(relay, name, False)
        relay.cut()  # a connection that waits for lost bytes would wait for ever, so clients connect again
