"""``heron tracker``: serves the topologies of profiles over HTTP."""

from __future__ import annotations

import click

from heron_service_tracker.command_options import url_of, with_tracker_options
from heron_service_tracker.http.address import Address
from heron_service_tracker.service import TrackerOptions, serve

__all__ = ["tracker"]


@click.command()
@with_tracker_options("127.0.0.1:8888")
def tracker(options: TrackerOptions) -> None:
    """Serves the topologies of profiles over HTTP, until Ctrl-C. It changes a topology only with --allow-actions.

    An address that other machines reach needs a token, or --without-token.
    """
    serve(options, _ready)


def _ready(address: Address) -> None:
    click.echo(f"heron: tracker at {url_of(address)}/api/v1/topologies", err=True)
