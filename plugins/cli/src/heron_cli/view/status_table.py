"""The table of the components of a topology, for `heron status` and the live view."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from heron.ipc.documents.status import ComponentStatus, TopologyStatus
from heron_cli.view.status_line import format_pressure, format_state
from heron_cli.view.text import format_bytes, format_count

__all__ = ["status_table"]


def status_table(status: TopologyStatus, wall_s: float) -> Group:
    """Return the table of the components, and below it the tasks that cause back pressure."""
    table = Table(title=f"{status.topology} ({format_state(status)})", title_justify="left", expand=False)
    table.add_column("component", no_wrap=True)
    for heading in ("tasks", "emitted", "executed", "failed", "per second", "queue", "latency"):
        table.add_column(heading, justify="right", no_wrap=True)
    sheds = any(each.shed for each in status.components)
    if sheds:
        table.add_column("shed", justify="right", no_wrap=True)
    for each in status.components:
        table.add_row(*_row(each), *([format_count(each.shed) if each.shed else ""] if sheds else []))
    culprits = [
        Text(f"{format_pressure(each, wall_s)} (container {each.container_id})", style="yellow")
        for each in status.backpressure
    ]
    return Group(table, *culprits)


def _row(each: ComponentStatus) -> tuple[str, ...]:
    return (
        each.name,
        str(each.parallelism),
        format_count(each.emitted),
        format_count(each.executed) if each.kind == "bolt" else "",
        format_count(each.failed) if each.failed else "",
        format_count(each.rate_per_s),
        format_bytes(each.queue_bytes),
        f"{each.latency_s * 1e6:,.1f} µs" if each.latency_s else "",
    )
