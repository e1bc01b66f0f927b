"""``heron dead-letters``: lists, shows, replays and drops the records of a topology that always failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from heron.clock import wall_s
from heron.errors import RefusedError, UsageError
from heron.ipc.task_question import MOST_LETTERS
from heron_cli.client.client import Client
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.logs.dead_letters import chosen_letters, drop_stored, letters_by_task, stored_letters
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.view.dead_letter_text import letter_fields, letter_lines, letters_lines
from heron_cli.view.text import counted, echo, print_json

__all__ = ["dead_letters"]

_EXIT_DECLINED = _EXIT_LEFT = 1
_LEFT = "left the topology; its letters can be shown and dropped"


@click.group("dead-letters")
@topology_argument
@click.pass_context
def dead_letters(context: click.Context, name: str) -> None:
    """Lists, shows, replays and drops the dead letters of the topology NAME, or of its last run when it has ended.

    A record becomes a dead letter when it has failed once more than topology.replay.attempts allows, or when it fails
    in a step of a pipeline with on_error("dead_letter"). Letters that a bolt receives are not here.
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


_IDS = click.argument("ids", metavar="[ID]...", nargs=-1)
_ALL = click.option("--all", "every", is_flag=True, help="Takes all letters in the files.")


@dead_letters.command()
@_IDS
@_ALL
@remote_options(timeout_s=30.0)
@click.pass_context
def replay(context: click.Context, ids: tuple[str, ...], every: bool, options: RemoteOptions) -> None:
    """Emits dead letters again, in the running topology, as new roots; effectively once, the bolt processes them again.

    Do this when the bolt was mended. A letter stays until its root is acked, or until a checkpoint has its effects.
    If the root fails too often again, the letter stays with its newest failure.
    Letters of a pipeline's steps stay: a step cannot get a record again.
    """
    _change(context, ids, every, options, drop=False)


@dead_letters.command()
@_IDS
@_ALL
@click.option("--yes", is_flag=True, help="Does not ask.")
@remote_options(timeout_s=30.0)
@click.pass_context
def drop(context: click.Context, ids: tuple[str, ...], every: bool, yes: bool, options: RemoteOptions) -> None:
    """Removes dead letters. Their records are lost."""
    _change(context, ids, every, options, drop=True, asked=not yes)


def _change(
    context: click.Context,
    ids: tuple[str, ...],
    every: bool,
    options: RemoteOptions,
    *,
    drop: bool,
    asked: bool = False,
) -> None:
    if every == bool(ids):
        msg = "give either the ids of dead letters, as `heron dead-letters NAME list` prints them, or --all"
        raise UsageError(msg)
    name = str(context.obj)
    with options.connect(name) as client:
        folder = client.log_folder(name, timeout_s=options.timeout_s)
        stored = stored_letters(folder)
        chosen = stored if every else chosen_letters(stored, ids)
        what = counted(len(chosen), "dead letter")
        if asked and chosen and not click.confirm(f"drop {what} of {name}?", err=True):
            echo("heron: nothing was dropped", err=True)
            context.exit(_EXIT_DECLINED)
        found = _taken(client, name, folder, [each.id for each in chosen], options.timeout_s, drop=drop)
    kept = {each.id: found.get(each.id, "it is gone meanwhile") for each in chosen}
    reasons = {number: reason for number, reason in kept.items() if reason}
    if options.as_json:
        print_json({"done": sorted(kept.keys() - reasons.keys()), "left": reasons})
    else:
        echo(f"{len(chosen) - len(reasons)} of {what} {'dropped' if drop else 'emitted again'}")
        for number, reason in reasons.items():
            echo(f"{number} stays: {reason}", err=True)
    if reasons:
        context.exit(_EXIT_LEFT)


def _taken(
    client: Client, name: str, folder: Path, ids: Sequence[str], timeout_s: float, *, drop: bool
) -> dict[str, str]:
    """Let the tasks of a running topology take the letters; change the files of other tasks.

    A letter that two files have is emitted by one task, and its copy is dropped.
    """
    if drop and name not in client.names():
        return drop_stored(folder, ids)
    wanted = set(ids)
    found: dict[str, str] = {}
    with client.topology(name, timeout_s=timeout_s) as topology:
        running = {each.task_id for each in topology.status().tasks}
        stored = letters_by_task(folder)
        for task_id in sorted(stored, key=lambda each: each not in running):
            here = [each.id for each in stored[task_id] if each.id in wanted]
            copies = [each for each in here if not drop and found.get(each) == ""]  # another task has emitted them
            left = [each for each in here if drop or found.get(each) != ""]
            for chosen, dropped in ((left, drop), (copies, True)):
                if task_id in running:
                    answers = _taken_by(topology, task_id, chosen, drop=dropped)
                elif dropped:
                    answers = drop_stored(folder, chosen, task_id)
                else:
                    answers = dict.fromkeys(chosen, f"task {task_id} has {_LEFT}")
                if chosen is left:
                    found |= {each: (drop and found.get(each)) or reason for each, reason in answers.items()}
    return found


def _taken_by(topology: RemoteTopology, task_id: int, ids: Sequence[str], *, drop: bool) -> dict[str, str]:
    """A task that refuses keeps its letters, and the others are asked nevertheless."""
    found: dict[str, str] = {}
    for begin in range(0, len(ids), MOST_LETTERS):
        part = ids[begin : begin + MOST_LETTERS]
        try:
            found |= topology.take_letters(task_id, part, drop=drop).found
        except RefusedError as error:
            found |= dict.fromkeys(part, str(error))
    return found
