"""Formats the failure of a Spark job in one line. Pure."""

from __future__ import annotations

import re

__all__ = ["format_failure"]

_RECENT = "most recent failure: "
_LOST = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((?P<place>[^)]*)\): ")
_PYTHON = re.compile(r"^(?P<error>(?:[\w.]+\.)?\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
_VERSIONS = re.compile(r"different version: (?P<worker>[\d.]+) than that in driver:? (?P<driver>[\d.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]*)": (?P<why>.*)')
_NO_PACKAGE = "No module named 'heron"
_LONGEST = 500


def format_failure(text: str) -> str:
    """Return the reason of the last failed task, without stack traces, with a remedy for known failures."""
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
    line = _with_remedy(_first_line(recent)[:_LONGEST])
    return f"{line} (on {place})" if place else line


def _first_line(text: str) -> str:
    """Return the first line, and the following ones while a line ends with a colon."""
    lines = [" ".join(each.split()) for each in text.splitlines() if each.strip()]
    first = lines[:1]
    while first and first[-1].endswith(":") and len(first) < len(lines):
        first.append(lines[len(first)])
    return " ".join(first)


def _with_remedy(line: str) -> str:
    if found := _NO_PYTHON.search(line):
        return (
            f"the workers cannot run {found['program']}: {found['why']}; set scheduler.python to an interpreter that "
            "they have, or ship one with scheduler.archives"
        )
    if _NO_PACKAGE in line:
        return (
            f"the workers' Python lacks a package that the command has: {line}; install heron-scheduler-spark there, "
            "set scheduler.python to an interpreter that has it, or ship one with scheduler.archives"
        )
    return line
