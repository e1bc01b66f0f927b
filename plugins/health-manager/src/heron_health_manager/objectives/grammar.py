"""The grammar of objectives: one line each, such as ``latency p99 <= 200 ms``.

    throughput >= rate of the source        throughput >= 80% of the source      throughput >= 5000 tuples/s
    latency p99 <= 200 ms                   (ms, s or min)
    backlog drained in <= 10 min            (s, min or h)
    containers <= 12                        tasks <= 40                          cost <= 7.5

An error names the place, what stands there, and what is allowed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_OBJECTIVES

__all__ = ["Objectives", "check_objectives", "joint_objectives", "parse_objectives"]

_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Objectives:
    """What a topology shall do; None is no objective.

    `share` of the rate of each source shall be served, and at least `tuples_per_s` of each source. `latency_s` bounds
    the 99th percentile of a tuple's way. A backlog shall be gone within `drain_s`. The others bound the plan.
    """

    share: float = 1.0
    tuples_per_s: float = 0.0
    latency_s: float | None = None
    drain_s: float | None = None
    containers: int | None = None
    tasks: int | None = None
    cost: float | None = None

    def share_of(self, rate: float) -> float:
        """The share of a source of that many tuples/s that shall be served, from 0 to 1."""
        return min(1.0, max(self.share, self.tuples_per_s / rate if rate > 0 else 0.0))


def parse_objectives(lines: Sequence[str]) -> Objectives:
    """Return what all lines ask for together; of two about the same, the stricter one counts.

    Without an objective of throughput, the rate of the source shall be served.

    Raises:
        ValueError: when a line is not an objective; names its number, from 1, and the place in it.
    """
    found: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        try:
            name, value = _Line(line).objective()
        except ValueError as error:
            msg = f"objective {number}, {line!r}: {error}"
            raise ValueError(msg) from None
        stricter = max if name in ("share", "tuples_per_s") else min
        found[name] = stricter(value, found.get(name, value))
    if "tuples_per_s" in found and "share" not in found:
        found["share"] = 0.0
    return Objectives(
        found.get("share", 1.0),
        found.get("tuples_per_s", 0.0),
        found.get("latency_s"),
        found.get("drain_s"),
        int(found["containers"]) if "containers" in found else None,
        int(found["tasks"]) if "tasks" in found else None,
        found.get("cost"),
    )


def check_objectives(value: object) -> None:
    """Check the value of ``topology.objectives``, before the topology starts.

    Raises:
        ValueError: when it is not a list of objectives.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        msg = f'{value!r:.60} is not a list of text; give one such as ["latency p99 <= 200 ms"]'
        raise ValueError(msg)
    parse_objectives(value)


@functools.lru_cache(maxsize=16)
def joint_objectives(of_policy: tuple[str, ...], of_topology: tuple[str, ...]) -> Objectives:
    """Return what the options of a policy and a topology ask for together, as `parse_objectives` does.

    Raises:
        ValueError: when a line of the topology is not an objective; names the setting.
    """
    try:
        parse_objectives(of_topology)
    except ValueError as error:
        msg = f"{TOPOLOGY_OBJECTIVES}: {error}"
        raise ValueError(msg) from None
    return parse_objectives((*of_policy, *of_topology))


class _Line:
    """The words of a line, read one after the other."""

    def __init__(self, line: str) -> None:
        self._words = [(match[0], match.start() + 1) for match in _WORD.finditer(line)]
        self._end = len(line) + 1
        self._next = 0

    def objective(self) -> tuple[str, float]:
        """The name of the field of `Objectives`, and its value."""
        kinds: dict[str, Callable[[], tuple[str, float]]] = {
            "throughput": self._throughput,
            "latency": self._latency,
            "backlog": self._backlog,
            "containers": lambda: ("containers", self._at_most(whole=True)),
            "tasks": lambda: ("tasks", self._at_most(whole=True)),
            "cost": lambda: ("cost", self._at_most(whole=False)),
        }
        name, value = kinds[self._one_of(*kinds)]()
        if self._next < len(self._words):
            word, place = self._words[self._next]
            msg = f"{word!r} at character {place} is too much; the objective ends before it"
            raise ValueError(msg)
        return name, value

    def _throughput(self) -> tuple[str, float]:
        self._one_of(">=")
        word, place = self._take("`rate of the source`, a share such as 80%, or a number of tuples/s")
        if word == "rate":
            self._all("of", "the", "source")
            return "share", 1.0
        if word.endswith("%"):
            share = self._positive(word[:-1], place, "a share such as 80%") / 100
            if share > 1:
                msg = f"{word!r} at character {place} is above 100%: a source has no more tuples"
                raise ValueError(msg)
            self._all("of", "the", "source")
            return "share", share
        rate = self._positive(word, place, "`rate of the source`, a share such as 80%, or a number")
        self._one_of("tuples/s")
        return "tuples_per_s", rate

    def _latency(self) -> tuple[str, float]:
        self._one_of("p99")
        self._one_of("<=")
        return "latency_s", self._seconds("ms", "s", "min")

    def _backlog(self) -> tuple[str, float]:
        self._all("drained", "in", "<=")
        return "drain_s", self._seconds("s", "min", "h")

    def _seconds(self, *units: str) -> float:
        word, place = self._take("a number")
        number = self._positive(word, place, "a number above 0")
        return number * _UNITS_S[self._one_of(*units)]

    def _at_most(self, *, whole: bool) -> float:
        self._one_of("<=")
        word, place = self._take("a number")
        allowed = "a whole number above 0" if whole else "a number above 0"
        if whole and not word.isdecimal():
            msg = f"{word!r} at character {place} is not {allowed}"
            raise ValueError(msg)
        return self._positive(word, place, allowed)

    def _positive(self, word: str, place: int, allowed: str) -> float:
        value = float(word) if _NUMBER.fullmatch(word) and word.isascii() else 0.0
        if value <= 0:
            msg = f"{word!r} at character {place} is not {allowed}"
            raise ValueError(msg)
        return value

    def _all(self, *words: str) -> None:
        for each in words:
            self._one_of(each)

    def _one_of(self, *allowed: str) -> str:
        expected = ", ".join(allowed)
        word, place = self._take(expected)
        if word not in allowed:
            msg = f"{word!r} at character {place}; allowed: {expected}"
            raise ValueError(msg)
        return word

    def _take(self, expected: str) -> tuple[str, int]:
        if self._next == len(self._words):
            msg = f"it ends at character {self._end}; expected: {expected}"
            raise ValueError(msg)
        self._next += 1
        return self._words[self._next - 1]
