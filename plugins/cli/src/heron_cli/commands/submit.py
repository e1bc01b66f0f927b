"""``heron submit``: the options. The work is in `heron_cli.launch.detached`, loaded while the author's file loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron_cli.commands.completion import complete_file, complete_profile
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.loaded import LoadingTopology
from heron_cli.launch.submit_request import SubmitRequest
from heron_cli.launch.target import parse_target, user_name

__all__ = ["submit"]

_Work = Callable[[SubmitRequest, LoadingTopology, Interrupts], None]


@click.command(
    epilog="Exit codes: 0 submitted, 1 the state manager does not answer, 2 refused and nothing is changed, "
    "130 Ctrl-C, likewise.",
)
@click.argument("where", metavar="PROFILE[/ROLE[/ENV]]", shell_complete=complete_profile)
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--dry-run", is_flag=True, help="Shows the plan; changes nothing.")
@click.option("--deactivated", is_flag=True, help="It begins paused, until `heron activate`.")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
@click.option("--verbose", is_flag=True, help="Shows the traceback where FILE does not load.")
def submit(  # noqa: PLR0913, PLR0917 - one parameter for each option
    where: str,
    target: str,
    arguments: tuple[str, ...],
    config_path: Path | None,
    settings: tuple[str, ...],
    dry_run: bool,
    deactivated: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Starts the topology of a Python file and returns; it runs on until it is finished or killed.

    ROLE and ENV are labels for whose it is and what for; without them your user name and "default". NAME chooses one
    of several topologies in the file, ARGS are for the file itself, as sys.argv.
    """
    request = SubmitRequest(parse_target(where, user_name()), config_path, settings, dry_run, deactivated, as_json)
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
        work = cast("_Work", load_object("heron_cli.launch.detached:submit_detached"))
        work(request, loading, interrupts)
