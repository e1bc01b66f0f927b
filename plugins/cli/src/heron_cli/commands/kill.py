"""``heron kill``: ends a topology."""

from __future__ import annotations

import click

from heron.driver_kit.redaction import redact_for_command
from heron_cli.client.client import Client
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, profile_option, topology_argument
from heron_cli.topologies.runs.kill_topology import KILL_STEPS, HowKilled, KillResult
from heron_cli.view.live.progress_output import progress
from heron_cli.view.text import echo, print_json

__all__ = ["kill"]

_EXIT_LEFT = 1
_EXIT_INTERRUPTED = 130


@click.command(epilog="Exit codes: 0 it is gone, 1 something of it is left, 2 wrong usage and nothing was changed.")
@topology_argument
@profile_option("The profile under which it runs.")
@choice_options()
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Seconds to wait for a clean stop; then its processes are killed.",
)
@click.option("--force", is_flag=True, help="Removes it although another host or profile has submitted it.")
@json_option
@click.pass_context
def kill(
    context: click.Context,
    name: str,
    profile: str,
    options: ChoiceOptions,
    timeout: float,
    force: bool,
    as_json: bool,
) -> None:
    """Ends the topology NAME, running or not. Its logs are kept, and its last report for a day."""
    with Client(options.choose(profile)) as client:
        try:
            with progress(KILL_STEPS) as shown:
                result = client.kill(name, timeout_s=timeout, force=force, progress=shown)
        except KeyboardInterrupt:
            echo(f"heron: interrupted; `heron kill {name}` continues where this one stopped", err=True)
            context.exit(_EXIT_INTERRUPTED)
    _print(result, as_json)
    context.exit(_EXIT_LEFT if result.left else 0)


def _print(result: KillResult, as_json: bool) -> None:
    run = result.run
    if as_json:
        document = {
            "topology": result.topology,
            "id": run.topology_id if run else None,
            "manner": result.manner.value,
            "why": redact_for_command(result.why),
            "left": [redact_for_command(each) for each in result.left],
            "logs": run.log_dir if run else None,
        }
        print_json(document)
        return
    if result.left:
        for each in result.left:
            echo(f"heron: error: left of {result.topology}: {redact_for_command(each)}", err=True)
        echo(f"heron: {result.topology}: remove the cause and give the command again", err=True)
        return
    done = {
        HowKilled.ASKED: "stopped",
        HowKilled.FORCED: f"ended by force ({redact_for_command(result.why)})",
        HowKilled.OVER: "was not running; what it had left is removed",
    }
    echo(f"{result.topology} {done[result.manner]}{f'; logs: {run.log_dir}' if run else ''}")
