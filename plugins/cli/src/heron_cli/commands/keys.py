"""``heron keys``: shows the keys of a topology, and gives it new ones while it runs."""

from __future__ import annotations

import click

from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.running.key_rotation import HeldKeys, held_keys, rotate_keys
from heron_cli.view.text import echo, print_json

__all__ = ["keys"]

_SHOW = "show"


class _Keys(click.Group):
    """``heron keys NAME`` is ``heron keys show NAME``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else [_SHOW, *args])


@click.group(cls=_Keys)
def keys() -> None:
    """Shows the keys of a running topology, or replaces them: `heron keys NAME`, `heron keys rotate NAME`."""


@keys.command(_SHOW)
@topology_argument
@remote_options(timeout_s=30.0)
def show(name: str, options: RemoteOptions) -> None:
    """Shows the public keys of the topology NAME, and what a rotation waits for."""
    with options.topology(name) as topology:
        held = held_keys(topology)
    _print(held, as_json=options.as_json)


@keys.command()
@topology_argument
@click.option(
    "--after",
    "after_s",
    type=click.FloatRange(min=0.0),
    metavar="SECONDS",
    help="Goes on after this time without containers that have not confirmed; their connections break.",
)
@remote_options(timeout_s=60.0, timeout_help="The longest wait for each of the two steps.")
def rotate(name: str, after_s: float | None, options: RemoteOptions) -> None:
    """Gives the topology NAME new keys while its data flows on; returns when the old ones are refused.

    A rotation that was interrupted is completed.
    """

    def show_step(text: str) -> None:
        if not options.as_json:
            echo(f"{name}: {text}")

    with options.topology(name) as topology:
        held = rotate_keys(topology, after_s=after_s, on_step=show_step)
    _print(held, as_json=options.as_json)


def _print(held: HeldKeys, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topology": held.topology,
                "rotating": held.rotating,
                "server_keys": list(held.server_keys),
                "waits_for": list(held.waits_for),
            }
        )
        return
    present, *following = held.server_keys
    echo(f"{held.topology}: server key {present}")
    for each in following:
        echo(f"{held.topology}: new server key {each}")
    for text in held.waits_for:
        echo(f"{held.topology}: {text}")
