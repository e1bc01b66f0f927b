"""The data that processes and logs show to other users; it must contain no secret."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["command_lines", "logs", "processes"]


def processes(sandbox: Sandbox) -> Iterator[bytes]:
    """Return the command line and the environment of each process of the sandbox."""
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.environ().get("HOME") == str(sandbox.home):
                yield "\n".join([*each.cmdline(), *map(str, each.environ().items())]).encode()


def command_lines(sandbox: Sandbox) -> Iterator[bytes]:
    """Return the command line of each process of the sandbox."""
    return (each.partition(b"\n(")[0] for each in processes(sandbox))


def logs(sandbox: Sandbox, *others: tuple[Path, str]) -> Iterator[bytes]:
    """Return the logs of the sandbox, and the files of that pattern below each of the `others`."""
    folders = [*others, (sandbox.home / ".heron" / "logs", "*"), (sandbox.tmp, "*.log")]
    for path in (found for folder, pattern in folders for found in folder.rglob(pattern)):
        with contextlib.suppress(OSError):
            if path.is_file():
                yield path.read_bytes()
