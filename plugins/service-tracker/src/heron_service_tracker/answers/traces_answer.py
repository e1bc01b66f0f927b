"""The traces of a topology, as the API answers with them."""

from __future__ import annotations

import msgspec

from heron_cli.client import AssembledTrace, TracesTable, TraceSummary, assembled, summary_of

__all__ = ["TracesAnswer", "traces_answer"]


class TracesAnswer(msgspec.Struct, frozen=True):
    """The figures of all complete traces that are kept, and the slowest of them, the slowest first.

    `refused` is the number of traces that came too fast to be kept.
    """

    summary: TraceSummary
    slowest: tuple[AssembledTrace, ...]
    refused: int
    age_s: float = 0.0
    error: str = ""


def traces_answer(table: TracesTable) -> TracesAnswer:
    """Return the answer with all traces; incomplete ones only where no trace is complete."""
    traces = tuple(map(assembled, table.traces))
    complete = [each for each in traces if each.complete] or list(traces)
    complete.sort(key=lambda each: -each.duration_s)
    return TracesAnswer(summary_of(traces), tuple(complete), table.refused)
