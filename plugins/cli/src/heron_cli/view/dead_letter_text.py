"""Dead letters as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.ipc.documents.letter_line import LetterLine
from heron_cli.view.text import columns, counted, format_age, format_time

__all__ = ["letter_fields", "letter_lines", "letters_lines"]

_VALUES_CHARACTERS, _ERROR_CHARACTERS = 40, 60


def letters_lines(letters: Sequence[LetterLine], wall_s: float) -> Iterator[str]:
    """Yield a table of letters."""
    rows = [("id", "age", "from", "failed in", "times", "error", "values")]
    for each in letters:
        error = each.error or ("its tree expired" if each.outcome == "expired" else "fail() was called")
        rows.append(
            (
                each.id,
                format_age(wall_s - each.failed_s),
                each.spout,
                f"{each.component}/{each.task_id}{f' {each.step}' if each.step else ''}" if each.component else "",
                str(each.failures),
                _cut(error, _ERROR_CHARACTERS),
                _cut(", ".join(each.shown), _VALUES_CHARACTERS),
            )
        )
    yield from columns(rows)


def letter_lines(letter: LetterLine, wall_s: float) -> Iterator[str]:
    """Yield everything about one letter."""
    place = f"{letter.component}/{letter.task_id}" if letter.component else "no task: its tree was not complete in time"
    if letter.step:
        yield f"dead letter {letter.id} of {letter.spout}, step {letter.step} (number {letter.step_number})"
        yield f"  element   {', '.join(letter.shown)}"
        yield f"  origin    {letter.tup_id}"
    else:
        yield f"dead letter {letter.id} of {letter.spout}, stream {letter.stream}"
        yield f"  values    {', '.join(letter.shown)}"
        if letter.tup_id:
            yield f"  id        {letter.tup_id}"
        yield f"  emitted   {format_time(letter.emitted_s)} for the first time"
    yield f"  failed    {counted(letter.failures, 'time')}, last {format_age(wall_s - letter.failed_s)} ago in {place}"
    if letter.error:
        yield f"  error     {letter.error}"
    if letter.trace:
        yield ""
        yield from letter.trace.splitlines()


def letter_fields(letter: LetterLine) -> dict[str, object]:
    """Return an entry of ``heron dead-letters NAME list --json``."""
    return {
        "id": letter.id,
        "spout": letter.spout,
        "stream": letter.stream,
        "values": letter.shown,
        "tup_id": letter.tup_id,
        "failures": letter.failures,
        "outcome": letter.outcome,
        "component": letter.component,
        "task_id": letter.task_id,
        "error": letter.error,
        "trace": letter.trace,
        "step": letter.step,
        "step_number": letter.step_number,
        "emitted_s": letter.emitted_s,
        "failed_s": letter.failed_s,
    }


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
