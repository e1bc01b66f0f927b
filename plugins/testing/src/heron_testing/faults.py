"""What a driver's test can do to the store or server behind the driver, and ready-made ways to do it."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from heron_testing.relay import Relay

__all__ = ["FULL_BYTES", "Fault", "Faults", "file_faults", "full_files", "path_away", "relay_faults"]

Fault = Callable[[], AbstractContextManager[None]]
"""Makes the fault for the time of a ``with`` block."""

FULL_BYTES = 64 * 1024
"""Where files end under `full_files`: what a test writes there is larger."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that a driver's test offers; the flags of the driver say which of them its suite needs.

    With the flag ``files``: `away` and `full`. With ``server``: `away`, `silent` and `answers_lost`.
    """

    away: Fault | None = None
    """The store is not there: connections are refused, the folder is gone."""
    full: Fault | None = None
    """No file grows above `FULL_BYTES`, so that a larger write ends in its middle."""
    silent: Fault | None = None
    """Requests are taken and never answered; existing connections stay open."""
    answers_lost: Fault | None = None
    """Requests arrive and are carried out, and their answers are lost."""


def file_faults(root: Path) -> Faults:
    """For a driver that keeps files below `root`."""
    return Faults(away=lambda: path_away(root), full=full_files)


def relay_faults(relay: Relay) -> Faults:
    """For a driver that talks to its server through `relay`."""
    return Faults(
        away=lambda: _relayed(relay, refuses=True),
        silent=lambda: _relayed(relay, swallows=True),
        answers_lost=lambda: _relayed(relay, swallows_answers=True),
    )


@contextmanager
def full_files(limit_bytes: int = FULL_BYTES) -> Iterator[None]:
    """In this process no file can be written beyond `limit_bytes`, as on a disk that is full (EFBIG, not ENOSPC)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def path_away(path: Path) -> Iterator[None]:
    """The folder is elsewhere, and a file stands in its place: works for root too, whom no mode keeps out."""
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
        relay.cut()  # what was swallowed never comes: a connection that waits for it has to be made anew
