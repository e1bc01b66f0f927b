"""Records that always fail, by the component and the line that fails them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from heron_cli.client import LetterLine
from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts

__all__ = ["poison_errors", "poison_problems"]

_POISONED = 70.0  # gravity: above errors, whose messages name no record; records are lost until somebody acts
_SHOWN, _CHARACTERS = 2, 120
_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def poison_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each component and line that has made dead letters, whose files are on this machine."""
    groups: dict[tuple[str, str], list[LetterLine]] = {}
    for each in _recent(facts):
        groups.setdefault((each.component, _line_of(each)), []).append(each)
    for (component, line), letters in groups.items():
        yield _problem(facts.topology, component, line, letters)


def poison_errors(facts: Facts) -> frozenset[tuple[str, str]]:
    """The components of these problems, and the classes of the exceptions that they raised."""
    return frozenset((each.component, each.error.partition(":")[0]) for each in _recent(facts) if each.error)


def _recent(facts: Facts) -> list[LetterLine]:
    return [each for each in facts.letters if each.failed_s >= facts.since_s]


def _problem(topology: str, component: str, line: str, letters: Sequence[LetterLine]) -> Problem:
    newest, records = letters[-1], f"{len(letters):,} record{'s' if len(letters) > 1 else ''}"
    sources = ", ".join(sorted({each.spout for each in letters}))
    if not component:
        what = f"{records} of {sources} expired each time, and became dead letters"
        how = "their trees are never complete"
    else:
        what = f"{component} fails {records} of {sources} each time" + (f", at {line}" if line else "")
        how = newest.error or f"{component} calls fail() for them"
    shown = "; ".join(", ".join(each.shown) for each in letters[: -_SHOWN - 1 : -1])
    return Problem(
        kind="poisoned",
        subject=component or sources,
        what=what,
        why=(_short(how), _short(f"such as {newest.id}: {shown}")),
        since_s=letters[0].failed_s,
        ruled_out=("a lost process (its tuples are emitted again and do not count as failed)",),
        action="correct the component, then emit the records again or drop them",
        command=f"heron dead-letters {topology} list",
        gravity=_POISONED,
    )


def _line_of(letter: LetterLine) -> str:
    found = list(_LINE.finditer(letter.trace))
    return f"{found[-1]['file'].rpartition('/')[2]}:{found[-1]['line']} in {found[-1]['function']}" if found else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else f"{line[: _CHARACTERS - 1]}…"
