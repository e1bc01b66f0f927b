"""Exceptions of the author's code that failed tuples, and did not end a process. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts

__all__ = ["error_problems"]

_FAILING, _SHOWN = 65.0, 20.0  # gravity: with failed tuples, without
_SUBJECT = re.compile(r"component '(?P<component>[^']+)', task (?P<task>\d+)[^:]*: (?P<what>.*)", re.DOTALL)


def error_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each task whose calls raised: the history has the time, the status only the message.

    A task reports an error of one line once. So what began before is told too, of a component that fails tuples now, or
    in a topology that has ended.
    """
    messages: dict[tuple[str, int], tuple[str, float | None]] = {}
    if facts.events is not None:
        for event in facts.events:
            if event.name == "user-error":
                told = event.at_s >= facts.since_s or not facts.running
                _take(messages, event.attributes.get("message", ""), event.at_s, None if told else facts.failing)
    elif facts.status is not None:
        for error in facts.status.errors:
            if " raised " in error:
                _take(messages, error, None)
    failed = {each.name: each.failed for each in facts.status.components} if facts.status else {}
    for (component, task), (message, at_s) in messages.items():
        count, now = failed.get(component, 0), facts.failing.get(component, 0)
        yield Problem(
            kind="errors",
            subject=f"{component}/{task}",
            what=f"{component}/{task} raises in its code"
            + (f"; {count:,} tuples of {component} failed" if count else "")
            + (f", {now:,} of them in the last {facts.observed_s:.0f} s" if now else ""),
            why=(message, *(("its log has each error once, with its traceback",) if count > 1 else ())),
            since_s=at_s,
            ruled_out=("a death of its process (it runs on)",) if facts.running else (),
            action="correct the error",
            command=f"heron logs {facts.topology} --task {task}",
            gravity=_FAILING if count else _SHOWN,
        )
    yield from _failures_without_error(facts, {component for component, _ in messages})


def _failures_without_error(facts: Facts, known: Collection[str]) -> Iterator[Problem]:
    """Tuples that failed in a topology that has ended, of components whose errors are not known."""
    for each in facts.status.components if facts.status and not facts.running else ():
        if each.failed and each.kind != "spout" and each.name not in known:
            yield Problem(
                kind="failures",
                subject=each.name,
                what=f"{each.failed:,} tuples of {each.name} failed",
                why=("no error is recorded: its code calls fail(), or its log has the error",),
                action="look at what fails them",
                command=f"heron logs {facts.topology}",
                gravity=_SHOWN,
            )


def _take(
    messages: dict[tuple[str, int], tuple[str, float | None]],
    message: str,
    at_s: float | None,
    only: Collection[str] | None = None,
) -> None:
    """Keeps the first message of each task; only of those components, if they are given."""
    if (found := _SUBJECT.search(message)) and (only is None or found["component"] in only):
        messages.setdefault((found["component"], int(found["task"])), (found["what"].strip(), at_s))
