"""The stored outcomes, and the tables of docs/health.md that are made of them. Pure but for reading and writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ground_truth.causes import CAUSES, HEALTHY, Cause
from ground_truth.errors import TruthError
from ground_truth.trial import Trial, Watched

__all__ = ["BEGIN", "DOCUMENT", "END", "Results", "publish", "read_results", "section", "table_row", "with_section"]

BEGIN = "<!-- written by ./dev truth -->"
END = "<!-- end of what ./dev truth wrote -->"

_ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = _ROOT / "docs" / "health.md"
_FILE = Path(__file__).with_name("results.json")


class Results(msgspec.Struct):
    """The newest outcome of each cause and of each healthy load by name.

    `impossible` has the reason for each cause that this machine cannot inject.
    """

    trials: dict[str, Trial] = {}
    healthy: dict[str, Watched] = {}
    impossible: dict[str, str] = {}

    def missing(self) -> list[str]:
        """Return the names of what has no outcome yet."""
        names = [each.name for each in CAUSES if each.name not in self.trials and each.name not in self.impossible]
        return names + [each.name for each in HEALTHY if each.name not in self.healthy]


def read_results() -> Results:
    """Return the stored outcomes; none if there is no file yet."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Results) if _FILE.exists() else Results()


def publish(results: Results) -> None:
    """Store the outcomes, and write the tables into docs/health.md.

    Raises:
        TruthError: when the document has no place for them.
    """
    text = with_section(DOCUMENT.read_text(encoding="utf-8"), section(results))
    _FILE.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    DOCUMENT.write_text(text, encoding="utf-8")


def with_section(text: str, lines: Iterable[str], marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return the text of the document with other lines between the marks.

    Raises:
        TruthError: when the marks are not there, once and in order.
    """
    first, last = marks
    begin, end = text.find(first), text.find(last)
    if (text.count(first), text.count(last)) != (1, 1) or begin > end:
        msg = f"docs/health.md does not have the lines {first!r} and {last!r} once, in this order"
        raise TruthError(msg)
    return text[:begin] + "\n".join([first, "", *lines, "", text[end:]])


def section(results: Results) -> list[str]:
    """Return the lines between the marks."""
    tried = [results.trials[each.name] for each in CAUSES if each.name in results.trials]
    right = sum(each.is_right for each in tried)
    lines = [f"The right diagnosis came first in {right} of {len(tried)} causes.", "", *_causes(results)]
    if results.impossible:
        lines += ["", "These causes could not be injected on the machine of this run:", ""]
        lines += [f"- {name}: {reason}" for name, reason in results.impossible.items()]
    if missing := results.missing():
        lines += ["", f"Not tried yet: {_codes(missing)}."]
    return [*lines, "", *_healthy(results)]


def _causes(results: Results) -> list[str]:
    rows = [_row(each, results.trials[each.name]) for each in CAUSES if each.name in results.trials]
    head = ("cause", "invites", "right diagnosis", "first diagnosis", "after", "complete after", "at the end of 30 s")
    return _table(head, rows)


def _row(cause: Cause, trial: Trial) -> tuple[str, ...]:
    first = trial.said[0] if trial.said else None
    complete = "never" if trial.complete_s is None else f"{trial.complete_s:.0f} s"
    if not trial.right:  # the cause is over by itself
        complete = ""
    wrong = "" if trial.is_right else " **(wrong)**"
    return (
        cause.text,
        f"`{cause.invites}`" if cause.invites else "",
        _codes(sorted({each.partition(" ")[0] for each in trial.right})) or "none",
        "none" if first is None else f"`{first.first}`{wrong}",
        "" if first is None else f"{first.at_s:.0f} s",
        complete,
        _codes(trial.at_end) or "none",
    )


def _healthy(results: Results) -> list[str]:
    rows = []
    for each in HEALTHY:
        if (watched := results.healthy.get(each.name)) is not None:
            said = sorted({alarm.diagnosis for alarm in watched.alarms})
            pressed = f"{watched.most_pressed:.0%}"
            rows.append((each.text, f"{watched.seconds:.0f} s", str(watched.rounds), pressed, _codes(said) or "none"))
    return _table(("healthy load", "observed", "rounds", "waits for a processor", "diagnoses"), rows)


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [table_row(cells) for cells in (head, ["---"] * len(head), *rows)]


def table_row(cells: Iterable[str]) -> str:
    """Return the line of a table."""
    return f"| {' | '.join(cells)} |"
