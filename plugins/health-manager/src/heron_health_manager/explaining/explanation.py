"""What `heron explain` answers: problems, the most serious first. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Explanation", "Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that suffers, and its cause.

    `what` names it with numbers; `subject` is the component, task, process or container, "" for the topology. `since_s`
    is wall-clock seconds. It is None if that is not known; `observed_s` then says for how long it was observed (0: it
    was not). `why` are statements, the strongest first. `ruled_out` are other causes, each with the number that
    excludes it. `action` is a line for people, `command` does it or shows more. `effect` is the source that it holds
    up, "" for none. `gravity` orders problems, the greatest first.
    """

    kind: str
    subject: str
    what: str
    why: tuple[str, ...]
    since_s: float | None = None
    observed_s: float = 0.0
    ruled_out: tuple[str, ...] = ()
    action: str = ""
    command: str = ""
    effect: str = ""
    gravity: float = 0.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The problems of a topology; `summary` says how it is where there are none.

    `ended` says how a topology ended (``finished at 13:04:12 UTC``), "" for one that runs. `unknown` limits the answer.
    """

    topology: str
    at_s: float
    summary: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    unknown: tuple[str, ...] = ()
    ended: str = ""
