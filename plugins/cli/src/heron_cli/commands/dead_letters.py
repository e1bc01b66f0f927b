"""``heron dead-letters``: lists and shows the records of a topology that always failed."""

from __future__ import annotations

import click

from heron.clock import wall_s
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.logs.dead_letters import chosen_letters, stored_letters
from heron_cli.view.dead_letter_text import letter_fields, letter_lines, letters_lines
from heron_cli.view.text import echo, print_json

__all__ = ["dead_letters"]


@click.group("dead-letters")
@topology_argument
@click.pass_context
def dead_letters(context: click.Context, name: str) -> None:
    """Lists and shows the dead letters of the topology NAME, or of its last run when it has ended.

    A record becomes a dead letter when it has failed once more than topology.replay.attempts allows. Letters that a
    bolt receives are not here.
    """
    context.obj = name


@dead_letters.command("list")
@click.option("-n", "count", type=click.IntRange(min=1), default=20, show_default=True, help="The newest letters.")
@remote_options(timeout_s=10.0)
@click.pass_obj
def list_command(name: str, count: int, options: RemoteOptions) -> None:
    """Lists the newest dead letters, with why they failed."""
    with options.connect(name) as client:
        letters = stored_letters(client.log_folder(name, timeout_s=options.timeout_s))
    if options.as_json:
        print_json([letter_fields(each) for each in letters[-count:]])
    elif letters:
        for line in letters_lines(letters[-count:], wall_s()):
            echo(line)
        if len(letters) > count:
            echo(f"and {len(letters) - count:,} older ones: -n {len(letters)}")
    else:
        echo(f"{name} has no dead letters in files")


@dead_letters.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@remote_options(timeout_s=10.0)
@click.pass_obj
def show(name: str, ids: tuple[str, ...], options: RemoteOptions) -> None:
    """Shows dead letters with their values and tracebacks."""
    with options.connect(name) as client:
        letters = chosen_letters(stored_letters(client.log_folder(name, timeout_s=options.timeout_s)), ids)
    if options.as_json:
        print_json([letter_fields(each) for each in letters])
        return
    for each in letters:
        for line in letter_lines(each, wall_s()):
            echo(line)
