"""Lines of log files as people read them: the engine's JSON rendered, the author's output as it is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

__all__ = ["ENGINE", "LogLine", "log_line", "who_writes"]

ENGINE = ("executor", "metricsmgr", "stmgr", "supervisor", "tmanager")

_NAME = re.compile(r"(?P<name>.+)-(?P<number>\d+)", re.ASCII)


class _Record(msgspec.Struct):
    at: str
    level: str
    message: str
    logger: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, and whose it is (``count/5``, ``stmgr-1``); without `at` (UTC) and `level` it is what user code
    printed.
    """

    who: str
    text: str
    at: str = ""
    level: str = ""
    error: str = ""

    def spoken(self) -> str:
        """For a person; a traceback stands below its message."""
        if not self.at:
            return f"{self.who} | {self.text}"
        lines = [f"{self.at[:23].replace('T', ' ')} {self.level:<8} {self.text}", *self.error.splitlines()]
        return "\n".join(f"{self.who} | {line}" for line in lines)


def who_writes(stem: str) -> tuple[str, int]:
    """Whose file it is, by its name without suffix, and the task, 0 for the engine's own processes."""
    found = _NAME.fullmatch(stem)
    if found is None or found["name"] in ENGINE:
        return stem, 0
    return f"{found['name']}/{found['number']}", int(found["number"])


def log_line(who: str, text: str, *, engine: bool) -> LogLine:
    """A line of a file; in one of the engine's, what is not one of its records stands as it is."""
    if engine:
        try:
            record = msgspec.json.decode(text.encode("utf-8", "replace"), type=_Record)
        except msgspec.MsgspecError:
            return LogLine(who, text)
        return LogLine(who, record.message, record.at, record.level, record.error)
    return LogLine(who, text)
