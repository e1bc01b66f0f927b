"""``heron checkpoints``: lists, shows, takes and deletes the checkpoints of a topology."""

from __future__ import annotations

from collections.abc import Callable

import click

from heron.clock import wall_s
from heron.errors import UsageError
from heron_cli.client.client import Client
from heron_cli.commands.options import (
    ChoiceOptions,
    choice_options,
    json_option,
    profile_option,
    timeout_option,
    topology_argument,
)
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.view.checkpoint_text import checkpoint_fields, checkpoint_lines, list_lines, listed_fields
from heron_cli.view.text import counted, echo, print_json

__all__ = ["checkpoints"]

_EXIT_DECLINED = 1


def _profile_options(command: Callable[..., None]) -> Callable[..., None]:
    return profile_option("The profile whose checkpoint store is used.")(choice_options(without=False)(command))


@click.group(
    epilog="Exit codes: 0 done, 1 the topology does not answer or the checkpoint failed, 2 refused and nothing was "
    "changed."
)
@topology_argument
@click.pass_context
def checkpoints(context: click.Context, name: str) -> None:
    """Lists, shows, takes and deletes the checkpoints of the topology NAME, whether it runs or not."""
    context.obj = name


@checkpoints.command("list")
@_profile_options
@json_option
@click.pass_obj
def list_command(name: str, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Lists the complete checkpoints of all runs, newest first."""
    with Client(options.choose(profile)) as client:
        found = client.checkpoints(name)
    now_s = wall_s()
    if as_json:
        print_json([listed_fields(each, now_s) for each in found])
    elif found:
        for line in list_lines(found, now_s):
            echo(line)
    else:
        echo(f"{name} has no complete checkpoints")


@checkpoints.command()
@click.argument("checkpoint", metavar="RUN/NUMBER|latest")
@_profile_options
@json_option
@click.pass_obj
def show(name: str, checkpoint: str, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Shows the tasks, sizes and objects of a checkpoint."""
    with Client(options.choose(profile)) as client:
        made = client.checkpoint(name, checkpoint)
    if as_json:
        print_json(checkpoint_fields(made))
        return
    for line in checkpoint_lines(made, wall_s()):
        echo(line)


@checkpoints.command()
@click.argument("chosen", metavar="[RUN/NUMBER]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Deletes all checkpoints that the running topology does not need.")
@click.option("--yes", is_flag=True, help="Does not ask.")
@_profile_options
@click.pass_context
def delete(
    context: click.Context,
    chosen: tuple[str, ...],
    every: bool,
    yes: bool,
    profile: str,
    options: ChoiceOptions,
) -> None:
    """Deletes checkpoints. State that another checkpoint needs stays."""
    name = str(context.obj)
    if every == bool(chosen):
        msg = "give either the ids of checkpoints, as `heron checkpoints NAME list` prints them, or --all"
        raise UsageError(msg)
    _delete(context, name, chosen, options.choose(profile), yes)


def _delete(context: click.Context, name: str, chosen: tuple[str, ...], choice: ProfileChoice, yes: bool) -> None:
    with Client(choice) as client:
        going = client.deletable_checkpoints(name, chosen)
        what = f"{counted(len(going), 'checkpoint')} of {name}"
        if going and not yes:
            for each in going:
                echo(str(each), err=True)
            if not click.confirm(f"delete {what}?", err=True):
                echo("heron: nothing was deleted", err=True)
                context.exit(_EXIT_DECLINED)
        client.delete_checkpoints(name, going)
    echo(f"{what} deleted")


@checkpoints.command()
@timeout_option(60.0, "The longest wait until it is complete.")
@_profile_options
@json_option
@click.pass_obj
def take(name: str, timeout: float, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Asks the running topology for a checkpoint, and waits until it is complete."""
    with Client(options.choose(profile)) as client:
        taken = client.take_checkpoint(name, timeout_s=timeout)
    if as_json:
        print_json({"topology": name, "id": str(taken)})
    else:
        echo(f"{name}: checkpoint {taken} is complete")
