"""``heron ui``: serves the pages and the tracker that they ask, from one process."""

from __future__ import annotations

import click

from heron.driver_kit.parent_process import bind_to_parent
from heron_service_tracker.command_options import url_of, with_tracker_options
from heron_service_tracker.http.address import Address
from heron_service_tracker.service import TrackerOptions, serve
from heron_service_ui.pages import ui_pages

__all__ = ["ui"]


@click.command()
@with_tracker_options("127.0.0.1:8889")
def ui(options: TrackerOptions) -> None:
    """Shows the topologies of profiles in a browser, until Ctrl-C. It changes a topology only with --allow-actions.

    The paths of `heron tracker` are served too. An address that other machines reach needs a token, or --without-token.
    """
    bind_to_parent()  # as the child of `heron run --ui`; else it does nothing
    serve(options, _ready, ui_pages(options))


def _ready(address: Address) -> None:
    click.echo(f"heron: ui at {url_of(address)}/ui/", err=True)
