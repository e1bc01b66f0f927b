"""The comparison as Markdown: the ratios with their goals, and the rates of all systems."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.peers.comparison import GOALS, Comparison

__all__ = ["ratios_of"]


def ratios_of(found: Comparison) -> Iterator[str]:
    """Return the ratios, their goals, and the rates of all systems as Markdown."""
    yield "| word count, ratio of the rates | measured | target, aim |"
    yield "|---|---|---|"
    for goal in GOALS:
        measured = found.ratio(goal)
        if measured is None:
            missing = "; ".join(found.missing[each] for each in goal.others if each in found.missing)
            yield f"| {goal.what} | not measured: {missing or 'not chosen'} | ≥ {goal.must:g}, ≥ {goal.aim:g} |"
            continue
        ratio, other = measured
        shown = f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
        named = f" ({other})" if len(goal.others) > 1 else ""
        met = "" if ratio >= goal.must else ", missed"
        yield f"| {goal.what}{named} | {shown}{met} | ≥ {goal.must:g}, ≥ {goal.aim:g} |"
    yield ""
    yield from _rates(found)
    yield ""
    yield _about(found)


def _rates(found: Comparison) -> Iterator[str]:
    yield "| system | version | million words/s, median | spread | runs |"
    yield "|---|---|---|---|---|"
    for name, rates in sorted(found.rates.items(), key=lambda each: -statistics.median(each[1])):
        middle = statistics.median(rates)
        spread = (max(rates) - min(rates)) / middle
        version = found.versions.get(name, "this tree")
        yield f"| {name} | {version} | {middle / 1e6:.3g} | {spread:.0%} | {len(rates)} |"
    for name, reason in found.missing.items():
        yield f"| {name} | {found.versions.get(name, '')} | not available: {reason} | | |"


def _about(found: Comparison) -> str:
    runs = max(map(len, found.rates.values()), default=0)
    about = ", ".join(f"{name} {value}" for name, value in found.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items() if name in found.rates)
    return (
        f"{found.date}; {about}; {versions}. Medians of {runs} rounds, in each of which every system ran once, in turn."
    )
