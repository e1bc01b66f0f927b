"""``heron kill``: ends a topology."""

from __future__ import annotations

from pathlib import Path

import click

from heron.driver_kit.redaction import redact_for_command
from heron.errors import UsageError
from heron.kernel.observers import installed_observers
from heron_cli.client.environment import open_environment
from heron_cli.client.kill_topology import STEPS, Ending, Manner, kill_topology
from heron_cli.client.lifecycle_hooks import announcing
from heron_cli.commands.completion import complete_profile, complete_topology
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.view.json_text import print_json
from heron_cli.view.progress import progress

__all__ = ["kill"]

_EXIT_LEFT = 1
_EXIT_INTERRUPTED = 130


@click.command(epilog="Exit codes: 0 it is gone, 1 something of it is left, 2 asked wrongly and nothing changed.")
@click.argument("name", shell_complete=complete_topology)
@click.option("--profile", default="local", show_default=True, shell_complete=complete_profile, help="Where it runs.")
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Has so long to stop by itself; then its processes are ended.",
)
@click.option("--force", is_flag=True, help="Removes it although another host or profile has submitted it.")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
@click.pass_context
def kill(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    name: str,
    profile: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    timeout: float,
    force: bool,
    as_json: bool,
) -> None:
    """Ends the topology NAME, running or not; nothing of it is left but its logs and, for a day, its last report."""
    if not timeout >= 0:
        msg = f"--timeout: {timeout:g} s is below 0 s; give the seconds that it has to stop by itself"
        raise UsageError(msg)
    environment = open_environment(find_profile(profile, config_path, parse_overrides(settings)))
    try:
        with progress(STEPS) as shown:
            ending = kill_topology(environment, name, timeout, shown, force=force)
    except KeyboardInterrupt:
        click.echo(f"heron: interrupted; `heron kill {name}` goes on where this one stopped", err=True)
        context.exit(_EXIT_INTERRUPTED)
    finally:
        environment.statemgr.close()
    if ending.run and ending.manner is not Manner.OVER and ending.state == "killed":  # else its topology manager did
        with announcing(installed_observers()) as observers:
            observers.notify("heron_topology_ended", topology=name, topology_id=ending.run.topology_id, state="killed")
    _tell(ending, as_json)
    context.exit(_EXIT_LEFT if ending.left else 0)


def _tell(ending: Ending, as_json: bool) -> None:
    run = ending.run
    if as_json:
        document = {
            "topology": ending.topology,
            "id": run.topology_id if run else None,
            "manner": ending.manner.value,
            "why": ending.why,
            "left": [redact_for_command(each) for each in ending.left],
            "logs": run.log_dir if run else None,
        }
        print_json(document)
        return
    if ending.left:
        for each in ending.left:
            click.echo(f"heron: error: left of {ending.topology}: {redact_for_command(each)}", err=True)
        click.echo(f"heron: {ending.topology}: remove the cause and give the command again", err=True)
        return
    done = {
        Manner.ASKED: "stopped",
        Manner.FORCED: f"ended by force ({ending.why})",
        Manner.OVER: "was not running; what it had left is removed",
    }
    print(f"{ending.topology} {done[ending.manner]}{f'; logs: {run.log_dir}' if run else ''}")
