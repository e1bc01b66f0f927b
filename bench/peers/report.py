"""The comparison as Markdown: the ratios with their targets, and the rates of all systems."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from bench.peers.comparison import GOALS, OWN_VERSION, Comparison, Goal

__all__ = ["details_of", "label", "machine_text", "summary_of"]

_LINE_LENGTH = 120


def summary_of(found: Comparison) -> Iterator[str]:
    """Return the measured ratios, without rates, and how they were measured."""
    yield "| word count, ratio of the rates | measured |"
    yield "|---|---|"
    for goal in GOALS:
        measured = found.ratios(goal)
        shown = _number(statistics.median(measured[0])) if measured else _not_measured(goal, found)
        yield f"| {_what(goal, measured, found)} | {shown} |"
    yield ""
    yield from _about(found)


def details_of(found: Comparison) -> Iterator[str]:
    """Return the ratios with their targets, the rates of all systems with their spread, and how they were measured."""
    yield "| ratio of the rates | measured | smallest to largest | must | aim |"
    yield "|---|---|---|---|---|"
    for goal in GOALS:
        measured = found.ratios(goal)
        shown = f"{_what(goal, measured, found)} | {_against(goal, measured, found)}"
        yield f"| {shown} | ≥ {goal.must:g} | ≥ {goal.aim:g} |"
    yield ""
    yield from _rates(found)
    yield ""
    yield from _about(found)


def label(name: str, found: Comparison) -> str:
    """Return the name of a subject for readers; the comparison itself names ours without "Heron"."""
    return name if name in found.versions else f"Heron, {name}"


def machine_text(machine: Mapping[str, object]) -> str:
    """Return the properties of a machine as text."""
    return ", ".join(f"{value} cores" if name == "cores" else str(value) for name, value in machine.items())


def _what(goal: Goal, measured: tuple[Sequence[float], str] | None, found: Comparison) -> str:
    if measured is None or len(goal.others) == 1:
        return goal.what
    absent = "".join(f"; not measured: {each}" for each in goal.others if each not in found.rates)
    return f"{goal.what} ({measured[1]}{absent})"


def _against(goal: Goal, measured: tuple[Sequence[float], str] | None, found: Comparison) -> str:
    if measured is None:
        return f"{_not_measured(goal, found)} |"
    middle = statistics.median(measured[0])
    missed = "" if middle >= goal.must else ", target missed"
    return f"{_number(middle)}{missed} | {_number(min(measured[0]))} to {_number(max(measured[0]))}"


def _not_measured(goal: Goal, found: Comparison) -> str:
    missing = ", ".join(each for each in goal.others if each in found.missing)
    return f"not measured: {missing}" if missing else "not measured"


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _rates(found: Comparison) -> Iterator[str]:
    yield "| system | version | million words/s, median | spread | runs |"
    yield "|---|---|---|---|---|"
    for name, rates in sorted(found.rates.items(), key=lambda each: -statistics.median(each[1])):
        middle = statistics.median(rates)
        spread = (max(rates) - min(rates)) / middle
        version = found.versions.get(name, OWN_VERSION)
        yield f"| {label(name, found)} | {version} | {middle / 1e6:.3g} | {spread:.0%} | {len(rates)} |"
    for name in found.missing:  # the reasons quote commands, with paths and addresses; the command prints them
        yield f"| {name} | {found.versions.get(name, '')} | not measured | | |"


def _about(found: Comparison) -> Sequence[str]:
    rounds = max(map(len, found.rates.values()), default=0)
    others = [name for name in found.rates if found.versions.get(name, OWN_VERSION) != OWN_VERSION]
    versions = {name.partition(",")[0]: found.versions[name] for name in others}
    how = "One round, in which each system" if rounds == 1 else f"Medians of {rounds} rounds; in each, every system"
    text = [
        f"{found.date}; {machine_text(found.machine)}; " + ", ".join(map(" ".join, versions.items())) + ".",
        f"{how} with a rate ran once, in turn.",
    ]
    return textwrap.wrap(" ".join(text), _LINE_LENGTH, break_on_hyphens=False)
