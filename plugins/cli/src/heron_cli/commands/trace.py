"""``heron trace``: where the time of a tuple goes."""

from __future__ import annotations

from dataclasses import dataclass

import click

from heron_cli.client.traces import AssembledTrace, TraceSummary, assembled, summary_of
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.console import open_console
from heron_cli.view.text import echo, print_json
from heron_cli.view.trace_text import no_traces_text, trace_text

__all__ = ["chosen_trace", "trace"]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What ``--json`` prints. `refused` is the number of traces that came too fast to be kept."""

    summary: TraceSummary
    refused: int
    shown: AssembledTrace | None
    traces: tuple[AssembledTrace, ...]


@click.command()
@topology_argument
@click.option("--slowest", is_flag=True, help="Shows the slowest trace, not the newest.")
@remote_options(timeout_s=10.0)
def trace(name: str, slowest: bool, options: RemoteOptions) -> None:
    """Shows where the time of the tuples of the topology NAME goes, by its traces.

    First the hops of all traces that are kept, with their shares of the time, then the hops of one trace. A topology
    traces roots if topology.trace.one.in is set; `heron update NAME --runtime-config topology.trace.one.in=10000` sets
    it while the topology runs.
    """
    with options.topology(name) as topology:
        table = topology.traces()
    traces = tuple(map(assembled, table.traces))
    shown = chosen_trace(traces, slowest=slowest)
    if options.as_json:
        print_json(_Answer(summary_of(traces), table.refused, shown, traces))
    elif shown is None:
        echo(no_traces_text(name))
    else:
        open_console().print(trace_text(summary_of(traces), shown, slowest=slowest), soft_wrap=True)


def chosen_trace(traces: tuple[AssembledTrace, ...], *, slowest: bool) -> AssembledTrace | None:
    """Return the slowest or the newest complete trace, if there is one, else an incomplete one; None without traces."""
    complete = [each for each in traces if each.complete] or list(traces)
    if slowest:
        return max(complete, key=lambda each: each.duration_s, default=None)
    return complete[-1] if complete else None
