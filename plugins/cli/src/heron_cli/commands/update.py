"""``heron update``: changes the tasks, the containers, the configuration or the code of a running topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from heron.errors import UsageError
from heron.ipc.documents.status import CodeStatus, UpdateStatus
from heron_cli.commands.completion import complete_file
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.running.code_request import CodeRequest, ShowPhase, parsed_share
from heron_cli.topologies.running.runtime_config import parse_changes
from heron_cli.view.code_text import code_as_json, code_lines, phase_lines
from heron_cli.view.text import echo, print_json
from heron_cli.view.update_text import config_as_json, config_lines, update_as_json, update_lines

if TYPE_CHECKING:
    from heron_cli.launch.update import TopologyUpdate

__all__ = ["update"]

_EXIT_INTERRUPTED = 130


@click.command()
@topology_argument
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--component-parallelism",
    "parallelism",
    metavar="COMPONENT:TASKS",
    multiple=True,
    help="The new number of tasks of a component; repeatable.",
)
@click.option(
    "--container-number",
    "containers",
    type=int,
    metavar="N",
    help="The new number of containers; without it, the packing decides.",
)
@click.option(
    "--rebalance",
    metavar="COMPONENT",
    multiple=True,
    help="Moves key groups from its busy tasks to its idle ones, as measured in 5 s; repeatable.",
)
@click.option(
    "--runtime-config",
    "runtime_config",
    metavar="[COMPONENT:]KEY=VALUE",
    multiple=True,
    help="A new value in the configuration of a component, or of the topology; repeatable.",
)
@click.option(
    "--code",
    metavar="FILE[:NAME]",
    shell_complete=complete_file,
    help="New code: the tasks of each component with other code run it; see docs/code-updates.md.",
)
@click.option(
    "--canary",
    metavar="SHARE",
    help="With --code: this share of the tasks first, such as 10%; the rest follows if they work as well.",
)
@click.option(
    "--canary-for",
    "canary_for_s",
    type=click.FloatRange(min=1.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --canary: how long the tasks are compared.",
)
@click.option("--dry-run", is_flag=True, help="Prints what would change, and changes nothing.")
@remote_options(timeout_s=300.0, timeout_help="The longest wait until the update is complete.")
@click.pass_context
def update(  # noqa: PLR0913, PLR0917  # one for each option
    context: click.Context,
    name: str,
    arguments: tuple[str, ...],
    parallelism: tuple[str, ...],
    containers: int | None,
    rebalance: tuple[str, ...],
    runtime_config: tuple[str, ...],
    code: str | None,
    canary: str | None,
    canary_for_s: float,
    options: RemoteOptions,
    *,
    dry_run: bool,
) -> None:
    """Changes the tasks and containers, the configuration or the code of the topology NAME while it runs.

    New tasks start before data is routed to them. Removed tasks process everything that was sent to them before they
    leave. Keyed state moves with its key groups if the topology takes checkpoints. One update changes either tasks and
    containers, or configuration, or code. ARGS are the arguments of the file with the new code.
    """
    given = bool(parallelism) or containers is not None, bool(rebalance), bool(runtime_config), code is not None
    if sum(given) != 1:
        msg = (
            "give either --component-parallelism and --container-number, or --rebalance, or --runtime-config, or "
            "--code; one update changes one of them"
        )
        raise UsageError(msg)
    if code is None and (canary is not None or arguments):
        msg = f"{'--canary' if canary else 'ARGS'}: belongs to new code; give --code FILE too"
        raise UsageError(msg)
    if code is not None:
        share = parsed_share(canary) if canary is not None else 0.0
        request = CodeRequest(code, arguments, share, canary_for_s, dry_run, _shown_phases(options))
        _change_code(context, name, request, options)
        return
    if runtime_config:
        _configure(name, runtime_config, options, dry_run=dry_run)
        return
    wanted = _parsed(parallelism)

    def show(phase: UpdateStatus) -> None:
        if not options.as_json and phase.phase != "complete":
            echo(f"{phase.phase}: waits for {phase.waits_for}" if phase.waits_for else phase.phase)

    try:
        with options.open() as client:
            done = client.update(
                name,
                wanted,
                containers=containers,
                rebalance=tuple(dict.fromkeys(rebalance)),
                dry_run=dry_run,
                timeout_s=options.timeout_s,
                on_phase=show,
            )
    except KeyboardInterrupt:
        echo(f"heron: interrupted; an update that has begun continues, see `heron status {name}`", err=True)
        context.exit(_EXIT_INTERRUPTED)
    _print(done, options)


def _change_code(context: click.Context, name: str, request: CodeRequest, options: RemoteOptions) -> None:
    try:
        with options.open() as client:
            done = client.update_code(name, request, timeout_s=options.timeout_s)
    except KeyboardInterrupt:
        echo(
            f"heron: interrupted; a change that has begun continues, and canaries return: see `heron status {name}`",
            err=True,
        )
        context.exit(_EXIT_INTERRUPTED)
    if options.as_json:
        print_json(code_as_json(done))
    else:
        for line in code_lines(done):
            echo(line)


def _shown_phases(options: RemoteOptions) -> ShowPhase:
    def show(status: CodeStatus, compared: Sequence[str]) -> None:
        for line in () if options.as_json else phase_lines(status, compared):
            echo(line)

    return show


def _configure(name: str, runtime_config: tuple[str, ...], options: RemoteOptions, *, dry_run: bool) -> None:
    wanted = parse_changes(runtime_config)
    with options.connect() as client:
        changes = client.configure(name, wanted, dry_run=dry_run, timeout_s=options.timeout_s)
    if options.as_json:
        print_json(config_as_json(name, changes))
    else:
        for line in config_lines(name, changes):
            echo(line)


def _print(done: TopologyUpdate, options: RemoteOptions) -> None:
    if options.as_json:
        print_json(update_as_json(done))
    else:
        for line in update_lines(done):
            echo(line)


def _parsed(values: tuple[str, ...]) -> dict[str, int]:
    """Return the numbers of tasks by component; an option may hold several, separated by spaces, as in Heron.

    Raises:
        UsageError: when a value does not have the form COMPONENT:TASKS.
    """
    found: dict[str, int] = {}
    for value in " ".join(values).split():
        component, _, number = value.rpartition(":")
        if not component or not number.isdecimal():
            msg = f"--component-parallelism {value!r}: give COMPONENT:TASKS, such as count:4"
            raise UsageError(msg)
        if found.setdefault(component, int(number)) != int(number):
            msg = f"--component-parallelism: component {component!r} has two numbers, {found[component]} and {number}"
            raise UsageError(msg)
    return found
