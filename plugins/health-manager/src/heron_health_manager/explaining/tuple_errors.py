"""Exceptions of the author's code that failed tuples, and did not end a process. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from heron.ipc.documents.status import UserErrorStatus
from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts
from heron_health_manager.explaining.words import duration

__all__ = ["error_problems"]

_FAILING, _SHOWN = 65.0, 20.0  # gravity: with failed tuples, without
_SUBJECT = re.compile(r"component '(?P<component>[^']+)', task (?P<task>\d+)[^:]*: (?P<what>.*)", re.DOTALL)
_TASKS = 5  # named in a sentence


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error that a task reported: its message, when, and the counts of all tasks, where the status has them."""

    text: str
    at_s: float | None
    counted: UserErrorStatus | None


def error_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each error of the tasks whose calls raised: the first of each task, and each once.

    A task reports an error of one line once. So what began before is told too, of an error that was raised since then,
    of a component that fails tuples now, or in a topology that has ended.
    """
    found = _first_of_each_task(facts)
    failed = {each.name: each.failed for each in facts.status.components} if facts.status else {}
    told: list[UserErrorStatus] = []
    for (component, task), raised in found.items():
        counted = raised.counted
        if counted is not None and counted in told:
            continue
        told += [counted] if counted is not None else []
        count, now = failed.get(component, 0), facts.failing.get(component, 0)
        once = counted.count == 1 if counted is not None else count <= 1
        yield Problem(
            kind="errors",
            subject=f"{component}/{task}",
            what=_sentence(f"{component}/{task}", counted, facts)
            + (f"; {count:,} tuples of {component} failed" if count else "")
            + (f", {now:,} of them in the last {facts.observed_s:.0f} s" if now else ""),
            why=(raised.text, *(() if once else ("its log has each error once, with its traceback",))),
            since_s=raised.at_s if raised.at_s is not None or counted is None else counted.first_at_s,
            ruled_out=("a death of its process (it runs on)",) if facts.running else (),
            action="correct the error",
            command=f"heron logs {facts.topology} --task {task}",
            gravity=_FAILING if count else _SHOWN,
        )
    yield from _failures_without_error(facts, {component for component, _ in found})


def _sentence(subject: str, counted: UserErrorStatus | None, facts: Facts) -> str:
    if counted is None:
        return f"{subject} raises in its code"
    tasks = [f"{counted.component}/{each}" for each in counted.tasks]
    more = f" and {len(tasks) - _TASKS} more tasks" if len(tasks) > _TASKS else ""
    age = f", the newest {duration(facts.now_s - counted.newest_at_s)} ago" if counted.newest_at_s is not None else ""
    times = "once" if counted.count == 1 else f"{counted.count:,} times"
    who, place = f"{', '.join(tasks[:_TASKS])}{more}", counted.place.rpartition("/")[2]
    return f"{who} raised {counted.exception} {times} at {place}{age if facts.running else ''}"


def _first_of_each_task(facts: Facts) -> dict[tuple[str, int], _Raised]:
    """The first error of each task: the history has its time, the status only the message and the count."""
    status = facts.status
    known = status.user_errors if status is not None else ()
    texts: list[tuple[str, float | None]] = []
    if facts.events is not None:
        texts += [(each.attributes.get("message", ""), each.at_s) for each in facts.events if each.name == "user-error"]
    elif status is not None:
        texts += [(each, None) for each in status.errors if " raised " in each]
    found: dict[tuple[str, int], _Raised] = {}
    for text, at_s in texts:
        if match := _SUBJECT.search(text):
            component, task = match["component"], int(match["task"])
            counted = next((each for each in known if task in each.tasks and each.has(text)), None)
            newest_s = max(at_s or 0.0, (counted and counted.newest_at_s) or 0.0)
            old = facts.running and 0.0 < newest_s < facts.since_s
            if not old or component in facts.failing:
                found.setdefault((component, task), _Raised(match["what"].strip(), at_s, counted))
    return found


def _failures_without_error(facts: Facts, known: Collection[str]) -> Iterator[Problem]:
    """Tuples that failed in a topology that has ended, of components whose errors are not known."""
    for each in facts.status.components if facts.status and not facts.running else ():
        if each.failed and each.kind != "spout" and each.name not in known:
            yield Problem(
                kind="failures",
                subject=each.name,
                what=f"{each.failed:,} tuples of {each.name} failed",
                why=("no error is recorded: its code calls fail(), or its log has the error",),
                action=f"look for calls of fail() in {each.name}, and for errors in its log",
                command=f"heron logs {facts.topology}",
                gravity=_SHOWN,
            )
