"""``heron status``: the state of a topology."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.running.status_report import StatusReport
from heron_cli.view.text import print_json

__all__ = ["status"]

_PRINT = "heron_cli.view.status_text:print_status"
"""Loaded by name because programs, which ask for JSON, get it 60 ms earlier without tables."""


@click.command()
@topology_argument
@remote_options(timeout_s=10.0)
def status(name: str, options: RemoteOptions) -> None:
    """Shows the state of the topology NAME: its tasks and processes, back pressure and errors.

    Without --profile, a topology that runs under one other profile is found there.
    """
    with options.open(name) as client:
        report = client.status(name, timeout_s=options.timeout_s)
    if options.as_json:
        print_json(report)
    else:
        cast("Callable[[StatusReport], None]", load_object(_PRINT))(report)
