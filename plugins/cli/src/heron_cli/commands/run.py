"""``heron run``: the options. The work is in `heron_cli.launch.foreground`, loaded while the author's file loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import click

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron_cli.commands.completion import complete_file, complete_profile
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.loaded import LoadingTopology
from heron_cli.launch.report import check_report_path
from heron_cli.launch.run_request import RunRequest

__all__ = ["run"]

_Work = Callable[[RunRequest, LoadingTopology, Interrupts], int]

_STARTED_S = monotonic_s()
_STARTED_AT_S = wall_s()


@click.command(
    epilog="Exit codes: 0 finished, 1 failed or timed out, 2 asked wrongly and nothing changed, 130 Ctrl-C.",
)
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--profile", default="local", show_default=True, shell_complete=complete_profile, help="Where and how it runs."
)
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stops it after that time, with exit code 1.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Writes how it went, as JSON.")
@click.option("--simulate", is_flag=True, help="Runs it in this one process, for tests and breakpoints.")
@click.option("--verbose", is_flag=True, help="Shows the traceback where FILE does not load.")
@click.pass_context
def run(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    target: str,
    arguments: tuple[str, ...],
    profile: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    timeout: float | None,
    report: Path | None,
    simulate: bool,
    verbose: bool,
) -> None:
    """Runs the topology of a Python file in the foreground, until it is finished or Ctrl-C.

    NAME chooses one of several: a Topology class, a TopologyBuilder, or a function that returns one. What stands
    after `--` is for the file itself, as sys.argv.
    """
    if timeout is not None and not timeout > 0:
        msg = f"--timeout: {timeout:g} s is not above 0 s; give the seconds after which it is stopped"
        raise UsageError(msg)
    if report:
        check_report_path(report)
    request = RunRequest(
        profile,
        config_path,
        settings,
        timeout,
        report,
        simulate,
        _STARTED_S,
        _STARTED_AT_S,
    )
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
        work = cast("_Work", load_object("heron_cli.launch.foreground:run_in_foreground"))
        code = work(request, loading, interrupts)
    context.exit(code)
