"""Exceptions of the author's code that failed tuples, and did not end a process. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts

__all__ = ["error_problems"]

_FAILING, _SHOWN = 65.0, 20.0  # gravity: with failed tuples, without
_SUBJECT = re.compile(r"component '(?P<component>[^']+)', task (?P<task>\d+)[^:]*: (?P<what>.*)", re.DOTALL)


def error_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each task whose calls raised: the history has the time, the status only the message."""
    messages: dict[tuple[str, int], tuple[str, float | None]] = {}
    if facts.events is not None:
        for event in facts.events:
            if event.name == "user-error" and event.at_s >= facts.since_s:
                _take(messages, event.attributes.get("message", ""), event.at_s)
    elif facts.status is not None:
        for error in facts.status.errors:
            if " raised " in error:
                _take(messages, error, None)
    failed = {each.name: each.failed for each in facts.status.components} if facts.status else {}
    for (component, task), (message, at_s) in messages.items():
        count = failed.get(component, 0)
        yield Problem(
            kind="errors",
            subject=f"{component}/{task}",
            what=f"{component}/{task} raises in its code"
            + (f"; {count:,} tuples of {component} failed" if count else ""),
            why=(message,),
            since_s=at_s,
            ruled_out=("a death of its process (it runs on)",),
            action="correct the error",
            command=f"heron logs {facts.topology} --task {task}",
            gravity=_FAILING if count else _SHOWN,
        )


def _take(messages: dict[tuple[str, int], tuple[str, float | None]], message: str, at_s: float | None) -> None:
    """Keeps the first message of each task."""
    if found := _SUBJECT.search(message):
        messages.setdefault((found["component"], int(found["task"])), (found["what"].strip(), at_s))
