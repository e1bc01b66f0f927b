"""Renders the topologies of a profile for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from heron_cli.topologies.runs.topology_list import TopologyEntry
from heron_cli.view.console import open_console
from heron_cli.view.text import format_time

__all__ = ["print_topologies"]


def print_topologies(entries: Sequence[TopologyEntry]) -> None:
    """Print a row for each topology."""
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("name", "role", "env", "state", "since", "containers", "tasks"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in {"containers", "tasks"} else "left")
    for each in entries:
        counts = [str(number) if number else "" for number in (each.containers, each.tasks)]
        table.add_row(each.name, each.role, each.env, each.state, format_time(each.since_s), *counts)
    open_console().print(table)
