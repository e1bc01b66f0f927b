"""A log as a whole: the bytes of its older parts and its newest one, in order, for people who keep or send it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.followed_log import FollowedLog
from heron.errors import UsageError, known, nearest
from heron_cli.topologies.logs.log_files import LogFolder

__all__ = ["WholeLog", "whole_log", "whole_logs"]

_CHUNK_BYTES = 1 << 16
_LEFT_OUT = b"\nheron: a part is left out: it was removed before it was read\n"


@dataclass(frozen=True, slots=True)
class WholeLog:
    """A log by the name of its newest file, such as ``count-5.out``, and its bytes with all parts when it was found."""

    name: str
    size_bytes: int
    path: Path

    def chunks(self) -> Iterator[bytes]:
        """Yield the log in pieces of at most 64 KiB, up to its size at the first one: a process may go on writing.

        Parts that the process renames meanwhile are read once. A part that it removes unread is named in the text.
        """
        with closing(FollowedLog(self.path)) as log:
            left, gaps = log.unread_bytes(), 0
            while left > 0 and (data := log.read(min(left, _CHUNK_BYTES))):
                if log.gaps > gaps:
                    gaps = log.gaps
                    yield _LEFT_OUT
                left -= len(data)
                yield data


def whole_logs(folder: Path, task_id: int | None = None, process: str = "") -> tuple[WholeLog, ...]:
    """Return the logs of a folder, or those of one task or process, by name.

    Raises:
        UsageError: when the task or the process has no logs there.
    """
    return tuple(_found(path) for path in LogFolder(folder, task_id, process).paths())


def whole_log(folder: Path, name: str) -> WholeLog:
    """Return the log of that name, which is compared with those of the folder and is no path.

    Raises:
        UsageError: when there is none; names the nearest one.
    """
    by_name = {path.name: path for path in LogFolder(folder).paths()}
    if name not in by_name:
        msg = f"there is no log {name!r:.80}{nearest(name, by_name)}; there are {known(list(by_name)[:20])}"
        raise UsageError(msg)
    return _found(by_name[name])


def _found(path: Path) -> WholeLog:
    with closing(FollowedLog(path)) as log:
        return WholeLog(path.name, log.unread_bytes(), path)
