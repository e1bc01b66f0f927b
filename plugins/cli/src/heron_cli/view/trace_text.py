"""Renders traces for people: the hops of all traces as a table, and one trace as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from heron.spi.tracing import HopKind
from heron_cli.client.traces import AssembledTrace, HopSummary, TraceStep, TraceSummary
from heron_cli.view.text import columns, counted, format_time

__all__ = ["format_duration", "no_traces_text", "trace_text"]

_BAR = 40  # characters for the whole trace
_MOST_STEPS = 200
_MOST_HOPS = 20


def no_traces_text(name: str) -> str:
    """Return what to do when there are no traces."""
    return (
        f"no traces of {name}; if it traces none yet, "
        f"`heron update {name} --runtime-config topology.trace.one.in=10000` begins with one of 10,000 roots"
    )


def trace_text(summary: TraceSummary, shown: AssembledTrace, *, slowest: bool) -> Text:
    """Return the summary, and the waterfall of a trace."""
    lines: list[Text] = []
    if summary.traces:
        lines += [*map(Text, _summary_lines(summary)), Text()]
    lines += _trace_lines(shown, "slowest" if slowest else "newest")
    return Text("\n").join(lines)


def format_duration(seconds: float) -> str:
    """``82.4 ms``, ``1.20 s``."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.{1 if seconds >= 0.01 else 3}f} ms"


def _summary_lines(summary: TraceSummary) -> Iterator[str]:
    left_out = f"; {summary.incomplete} more are not complete" if summary.incomplete else ""
    times = ", ".join(
        f"{name} {format_duration(value)}"
        for name, value in (("p50", summary.p50_s), ("p90", summary.p90_s), ("p99", summary.p99_s))
    )
    yield f"{counted(summary.traces, 'trace')}: {times}{left_out}"
    rows = [("share", "hop", "p50", "p90", "p99", "where")]
    rows += [
        (
            f"{each.share:.0%}",
            each.kind.value,
            format_duration(each.p50_s),
            format_duration(each.p90_s),
            format_duration(each.p99_s),
            _where(each),
        )
        for each in summary.hops[:_MOST_HOPS]
    ]
    yield from columns(rows)
    if len(summary.hops) > _MOST_HOPS:
        yield f"… {len(summary.hops) - _MOST_HOPS} more, with smaller shares"


def _where(each: HopSummary | TraceStep) -> str:
    if not each.source or each.kind in (HopKind.EXECUTE, HopKind.QUEUE):
        return each.component
    return f"{each.source} → {each.component}"


def _trace_lines(trace: AssembledTrace, which: str) -> Iterator[Text]:
    outcome = f", {trace.outcome}" if trace.outcome else ""
    from_task = f" of {trace.component}/{trace.task_id}" if trace.component else ""
    at = format_time(trace.at_s)
    yield Text(f"the {which} trace, {trace.trace_id}{from_task}, at {at}: {format_duration(trace.duration_s)}{outcome}")
    if trace.missing:
        yield Text(f"{counted(trace.missing, 'span')} or more of it did not arrive", style="yellow")
    if trace.cut:
        yield Text("tuples that it led to were not all followed", style="yellow")
    steps = trace.steps[:_MOST_STEPS]
    width = max((len(_label(each)) for each in steps), default=0)
    for each in steps:
        about = "about " if each.is_estimate else ""
        bar = _bar(each, trace.duration_s)
        style = "bold" if each.critical_s > 0 else "dim"
        yield Text(
            f"{_label(each):{width}}  {each.kind.value:10}  {bar}  {about}{format_duration(each.duration_s)}", style
        )
    if len(trace.steps) > _MOST_STEPS:
        yield Text(f"… {len(trace.steps) - _MOST_STEPS} more hops; --json has all")


def _label(step: TraceStep) -> str:
    task = f"{step.component}/{step.task_id}"
    arrow = f"{step.source} → {task}" if step.source else task
    return "  " * step.depth + arrow


def _bar(step: TraceStep, whole_s: float) -> str:
    """Return the place of a step in the trace; each step has at least a thin mark."""
    if whole_s <= 0:
        return " " * _BAR
    start = min(_BAR - 1, int(_BAR * step.start_s / whole_s))
    length = round(_BAR * step.duration_s / whole_s)
    mark = "█" * min(length, _BAR - start) or "▏"
    return (" " * start + mark).ljust(_BAR)
