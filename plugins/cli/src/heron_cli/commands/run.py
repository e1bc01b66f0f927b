"""``heron run``: runs a topology in the foreground."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import click

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron_cli.commands.completion import complete_file
from heron_cli.commands.file_arguments import file_arguments, keys_option
from heron_cli.commands.options import ChoiceOptions, choice_options, profile_option, verbose_option
from heron_cli.foreground.run_report import RunRequest, check_report_path
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadingTopology

__all__ = ["run"]

_Run = Callable[[RunRequest, LoadingTopology, Interrupts], int]
_CheckInstalled = Callable[[], None]

_FOREGROUND = "heron_cli.foreground.foreground_run:run_in_foreground"
_CHECK_UI = "heron_cli.foreground.run_page:check_ui_installed"
_SIMULATED = "heron_cli.foreground.simulated:run_simulated"
_SEEDED = "heron_cli.foreground.seeded:run_seeded"
_CHECK_SIMULATION = "heron_cli.foreground.seeded:check_simulation_installed"


@click.command(
    epilog="Exit codes: 0 finished, 1 failed or timed out, 2 wrong usage and nothing was changed, 130 Ctrl-C.",
)
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@keys_option
@profile_option("The profile under which it runs.")
@choice_options(engine=True)
@click.option("--timeout", type=float, metavar="SECONDS", help="Stops it after that time, with exit code 1.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Writes a report of the run, as JSON.")
@click.option(
    "--from-checkpoint",
    metavar="RUN/NUMBER|latest",
    default="",
    help="Starts with the state of a checkpoint, see `heron checkpoints`.",
)
@click.option("--reload", is_flag=True, help="Gives the running tasks the code of a file when it is saved.")
@click.option("--ui", "page", is_flag=True, help="Serves a page of the run in a browser, on this machine.")
@click.option("--simulate", is_flag=True, help="Runs it in this process, for tests and breakpoints.")
@click.option("--seed", type=int, metavar="N", help="With --simulate: on simulated machines, in an order of this seed.")
@click.option("--faults", is_flag=True, help="With --seed: kills, stops and cuts processes, and compares the results.")
@verbose_option
@click.pass_context
def run(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    target: str,
    arguments: tuple[str, ...],
    keys: tuple[str, ...],
    profile: str,
    options: ChoiceOptions,
    timeout: float | None,
    report: Path | None,
    from_checkpoint: str,
    reload: bool,
    page: bool,
    simulate: bool,
    seed: int | None,
    faults: bool,
    verbose: bool,
) -> None:
    """Runs the topology of a file in the foreground until it is finished, or Ctrl-C.

    NAME chooses one of several topologies: a Topology class, a TopologyBuilder, or a function that returns one.
    Arguments after `--` are the file's own sys.argv. A compat plugin may read other files than Python's, such as jars.
    """
    started_s, started_at_s = monotonic_s(), wall_s()
    _check(timeout, report, from_checkpoint, page=page, simulate=simulate, reload=reload)
    _check_seed(seed, report, faults=faults, simulate=simulate)
    choice = options.choose(profile)
    arguments = file_arguments(context, target, keys, arguments)
    request = RunRequest(
        choice, timeout, report, simulate, started_s, started_at_s, from_checkpoint, page, seed, faults, target, reload
    )
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
        # Imported while the child process loads the file.
        work = cast("_Run", load_object(_FOREGROUND if not simulate else _SIMULATED if seed is None else _SEEDED))
        code = work(request, loading, interrupts)
    context.exit(code)


def _check(
    timeout: float | None, report: Path | None, from_checkpoint: str, *, page: bool, simulate: bool, reload: bool
) -> None:
    """Refuse options that are wrong or contradict each other, before the author's file is loaded."""
    if timeout is not None and not timeout > 0:
        msg = f"--timeout: {timeout:g} s is not above 0 s; give the seconds after which it is stopped"
        raise UsageError(msg)
    if simulate and from_checkpoint:
        msg = f"--from-checkpoint {from_checkpoint!r:.80}: the simulator takes no checkpoints; leave out --simulate"
        raise UsageError(msg)
    if reload and simulate:
        msg = "--reload: the simulator has no tasks that another one can replace; leave out --simulate"
        raise UsageError(msg)
    if page and simulate:
        msg = "--ui: the simulator has no processes to ask; leave out --simulate"
        raise UsageError(msg)
    if page:
        cast("_CheckInstalled", load_object(_CHECK_UI))()
    if report:
        check_report_path(report)


def _check_seed(seed: int | None, report: Path | None, *, faults: bool, simulate: bool) -> None:
    """Refuse a seed that does not fit to the other options, or that no installed distribution can simulate."""
    if seed is None:
        if faults:
            msg = "--faults: a seed decides the faults; add --seed N"
            raise UsageError(msg)
        return
    if not simulate:
        msg = f"--seed {seed}: it belongs to the simulation; add --simulate"
        raise UsageError(msg)
    if report:
        msg = "--report: a simulation with --seed makes several runs, and no report; leave it out"
        raise UsageError(msg)
    cast("_CheckInstalled", load_object(_CHECK_SIMULATION))()
