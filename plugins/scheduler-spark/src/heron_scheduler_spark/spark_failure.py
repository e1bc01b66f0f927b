"""What Spark says of a job that failed, in one line. Pure."""

from __future__ import annotations

import re

__all__ = ["spoken_failure"]

_RECENT = "most recent failure: "
_LOST = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((?P<place>[^)]*)\): ")
_PYTHON = re.compile(r"^(?P<error>(?:[\w.]+\.)?\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
_VERSIONS = re.compile(r"different version: (?P<worker>[\d.]+) than that in driver:? (?P<driver>[\d.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]*)": (?P<why>.*)')
_NO_PACKAGE = "No module named 'heron"
_LONGEST = 500


def spoken_failure(text: str) -> str:
    """The reason of the last task that failed, without what surrounds it."""
    if "PYTHON_VERSION_MISMATCH" in text and (found := _VERSIONS.search(text)):
        return (
            f"the workers run Python {found['worker']} and this command {found['driver']}; set scheduler.python to an "
            f"interpreter of version {found['driver']} on the workers, or ship one with scheduler.archives"
        )
    recent = text.partition(_RECENT)[2] or text
    place = ""
    if lost := _LOST.search(recent):
        place, recent = lost["place"], recent[lost.end() :]
    if "Traceback" in recent and (errors := _PYTHON.findall(recent.partition("Driver stacktrace:")[0])):
        recent = errors[-1]
    line = _remedied(_first_line(recent)[:_LONGEST])
    return f"{line} (on {place})" if place else line


def _first_line(text: str) -> str:
    """With the next one, where it announces that."""
    lines = [" ".join(each.split()) for each in text.splitlines() if each.strip()]
    said = lines[:1]
    while said and said[-1].endswith(":") and len(said) < len(lines):
        said.append(lines[len(said)])
    return " ".join(said)


def _remedied(line: str) -> str:
    if found := _NO_PYTHON.search(line):
        return (
            f"the workers cannot run {found['program']}: {found['why']}; set scheduler.python to an interpreter that "
            "they have, or ship one with scheduler.archives"
        )
    if _NO_PACKAGE in line:
        return (
            f"the workers' Python lacks what the command has: {line}; install heron-scheduler-spark there, set "
            "scheduler.python to an interpreter that has it, or ship one with scheduler.archives"
        )
    return line
