"""Renders a sample of tuples for people: a table for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.task_tuples import SampledTuple, TaskTuples
from heron_cli.view.text import columns, counted

__all__ = ["tuples_lines"]


def tuples_lines(tuples: TaskTuples) -> list[str]:
    """Return the lines: what the task has received, then what it has emitted."""
    task, process = f"{tuples.component}/{tuples.task_id}", f"pid {tuples.pid} on {tuples.host}"
    lines = [f"{task}: tuples of {tuples.lasted_s:.1f} s ({process})"]
    for what, found in (("received", tuples.received), ("emitted", tuples.emitted)):
        lines += ["", f"{what}: {counted(len(found), 'tuple')}", *_tables(found, with_source=what == "received")]
    return lines


def _tables(found: Sequence[SampledTuple], *, with_source: bool) -> Iterator[str]:
    for component, stream, fields in dict.fromkeys((each.component, each.stream, each.fields) for each in found):
        chosen = [each for each in found if (each.component, each.stream, each.fields) == (component, stream, fields)]
        yield f"  {'from' if with_source else 'by'} {component}, stream {stream}:"
        rows = [("    task", *fields)]
        rows += [(f"    {each.task_id}", *map(_printable, each.values)) for each in chosen]
        yield from columns(rows)


def _printable(text: str) -> str:
    """Text without control characters: a name in a value may have them."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
