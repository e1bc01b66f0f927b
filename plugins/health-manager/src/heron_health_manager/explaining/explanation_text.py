"""An explanation in at most eight lines."""

from __future__ import annotations

from collections.abc import Iterator

from heron_health_manager.explaining.explanation import Explanation, Problem
from heron_health_manager.explaining.words import clock_time, duration

__all__ = ["MOST_LINES", "explanation_lines"]

MOST_LINES = 8

_WHY_LINES = 2  # of one problem that has all lines for itself
_RULED_OUT = 4
_WIDEST = 300  # characters of one statement; an exception may carry a page


def explanation_lines(explanation: Explanation) -> list[str]:
    """The lines for people: one problem in full, two in four lines each, of more the two most serious ones."""
    problems = explanation.problems
    if not problems:
        lines = [*explanation.summary, *_unknown(explanation)]
    elif len(problems) == 1:
        lines = [*_full(problems[0], explanation), *_unknown(explanation)]
    else:
        several = len(problems) > 2
        lines = [line for each in problems[:2] for line in _short(each, explanation, ruled_out=not several)]
        if several:
            lines.append("also: " + "; ".join(each.what for each in problems[2:])[:_WIDEST])
            lines.append(f"everything: heron explain {explanation.topology} --json")
    return lines[:MOST_LINES]


def _full(problem: Problem, explanation: Explanation) -> Iterator[str]:
    yield _headline(problem, explanation)
    if since := _since(problem, explanation):
        yield f"  since      {since}"
    for number, each in enumerate(problem.why[:_WHY_LINES]):
        yield f"  {'why' if number == 0 else '':<10} {_line(each)}"
    if problem.ruled_out:
        yield f"  ruled out  {'; '.join(problem.ruled_out[:_RULED_OUT])}"
    if problem.action:
        yield f"  to do      {problem.action}"
    if problem.command:
        yield f"             {problem.command}"


def _short(problem: Problem, explanation: Explanation, *, ruled_out: bool) -> Iterator[str]:
    observed = f", observed for {duration(problem.observed_s)}" if problem.observed_s else ""
    since = f", since {clock_time(problem.since_s)}" if problem.since_s is not None else observed
    yield f"{_headline(problem, explanation)}{since}"
    yield f"  why        {_line('; '.join(problem.why[:_WHY_LINES]))}"
    if ruled_out and problem.ruled_out:
        yield f"  ruled out  {'; '.join(problem.ruled_out[:_RULED_OUT])}"
    yield f"  to do      {': '.join(filter(None, (problem.action, problem.command)))}"


def _headline(problem: Problem, explanation: Explanation) -> str:
    """A text that names the topology already stays as it is."""
    if problem.what.startswith(f"{explanation.topology} "):
        return problem.what
    ended = f" ({explanation.ended})" if explanation.ended else ""
    return f"{explanation.topology}{ended}: {problem.what}"


def _since(problem: Problem, explanation: Explanation) -> str:
    """Since when, or else for how long it was observed; empty if neither is known."""
    if problem.since_s is None:
        return f"not known; observed for {duration(problem.observed_s)}" if problem.observed_s else ""
    age = duration(explanation.at_s - problem.since_s)
    when = clock_time(problem.since_s)
    return f"{when}, {age} before the end" if explanation.ended else f"{when}, for {age}"


def _unknown(explanation: Explanation) -> Iterator[str]:
    if explanation.unknown:
        yield f"  not known  {_line('; '.join(explanation.unknown))}"


def _line(text: str) -> str:
    """One line; what is too long is cut."""
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
