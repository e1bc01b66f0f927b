"""What an author's code got wrong: the differences between its runs. Pure.

Two runs without faults differ in the order in which tuples of different tasks arrive. A run with faults is compared
with what both of them agree about, so that a difference has one cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from heron.api.api_constants import TopologyReliabilityMode
from heron_testing.seeded.authors.program_run import Left

__all__ = ["Finding", "faulty_findings", "order_findings"]

_SHOWN = 80  # characters of a value

_STATE = "a task that restarts begins with initialize; keep what must stay in init_state or keyed_state"
_REPEATED: dict[str, str] = {
    TopologyReliabilityMode.EFFECTIVELY_ONCE: (
        "an effect before the checkpoint is repeated after a restore; write by pre_save, post_save and pre_restore, or "
        "so that a repeated write changes nothing"
    ),
    TopologyReliabilityMode.ATLEAST_ONCE: (
        "at least once, a tuple is processed again after a fault; write so that a repeated write changes nothing"
    ),
}
_LOST: dict[str, str] = {
    TopologyReliabilityMode.ATMOST_ONCE: "at most once, a fault loses tuples; set topology.reliability.mode",
}
_LOST_ELSE = "the task has acked or saved before it wrote, or kept it in memory alone"


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is order, repeated, lost, wrong, state, error or stuck; `text` has the place, `remedy` what to do."""

    kind: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" + (f"\n    {self.remedy}" if self.remedy else "")


def order_findings(one: Left, other: Left) -> list[Finding]:
    """The differences of two runs without faults."""
    remedy = "tuples of different tasks arrive in any order; use what does not depend on it, or event time"
    found = [
        Finding("order", f"{path} has other lines if tuples arrive in another order, such as {_shown(line)}", remedy)
        for path, line in _first_differences(one.files, other.files)
    ]
    if (line := _first(_new(one.printed, other.printed))) is not None:
        found.append(Finding("order", f"another order prints {_shown(line)}", remedy))
    return found


def faulty_findings(one: Left, other: Left, faulty: Left, mode: str) -> list[Finding]:
    """The differences of a run with faults from two without, whose reliability mode is `mode`."""
    found = [Finding("error", each, "it does not fail without faults") for each in faulty.errors]
    if faulty.state == "running":
        found.append(Finding("stuck", "the topology does not end after the last fault"))
    for path in sorted(one.files.keys() | faulty.files.keys()):
        if one.files.get(path) == other.files.get(path):
            found += _of_file(path, one.files.get(path, Counter()), faulty.files.get(path, Counter()), mode)
    if set(one.printed) == set(other.printed):
        found += _of_prints(one.printed, faulty.printed)
    for component, index in sorted(one.attributes):
        found += _of_attributes(component, index, one, other, faulty)
    return found


def _of_file(path: str, expected: Counter[str], lines: Counter[str], mode: str) -> Iterator[Finding]:
    more, fewer = lines - expected, expected - lines
    repeated = {line: count for line, count in more.items() if line in expected}
    if (line := _first(repeated)) is not None:
        text = f"{path} has {sum(repeated.values())} lines more than once, such as {_shown(line)}"
        yield Finding("repeated", text, _REPEATED.get(mode, ""))
    wrong = [line for line in more if line not in expected]
    if wrong:
        missing = f" instead of {_shown(_first(fewer))}" if fewer else ""
        yield Finding("wrong", f"{path} has {_shown(wrong[0])}{missing}", _STATE)
    elif (line := _first(fewer)) is not None:
        text = f"{path} lacks {sum(fewer.values())} lines, such as {_shown(line)}"
        yield Finding("lost", text, _LOST.get(mode, _LOST_ELSE))


def _of_prints(expected: Counter[str], printed: Counter[str]) -> Iterator[Finding]:
    new, missing = _first(_new(expected, printed)), _first(_new(printed, expected))
    if new is not None and missing is not None:
        yield Finding("wrong", f"it prints {_shown(new)} instead of {_shown(missing)}", _STATE)
    elif missing is not None:
        yield Finding("lost", f"it does not print {_shown(missing)}", _STATE)


def _of_attributes(component: str, index: int, one: Left, other: Left, faulty: Left) -> Iterator[Finding]:
    key = component, index
    expected, found = one.attributes[key], faulty.attributes.get(key, {})
    agreed = other.attributes.get(key, {})
    for name, value in expected.items():
        if name in agreed and agreed[name] == value and name in found and found[name] != value:
            text = (
                f"self.{name} of task {index} of {component!r} is {_shown(found[name])} at the end, and "
                f"{_shown(value)} without faults"
            )
            yield Finding("state", text, _STATE)


def _first_differences(
    one: Mapping[str, Counter[str]], other: Mapping[str, Counter[str]]
) -> Iterator[tuple[str, object]]:
    for path in sorted(one.keys() | other.keys()):
        lines, others = one.get(path, Counter()), other.get(path, Counter())
        if lines != others:
            yield path, _first((lines - others) or (others - lines))


def _new(before: Counter[str], after: Counter[str]) -> list[str]:
    return [line for line in after if line not in before]


def _first(values: Mapping[str, int] | list[str]) -> str | None:
    return next(iter(sorted(values)), None)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
