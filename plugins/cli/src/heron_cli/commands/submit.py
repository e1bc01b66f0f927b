"""``heron submit``: starts a topology that runs on when the command and its terminal are gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron_cli.client.client import Client, SubmitResult
from heron_cli.commands.completion import complete_file, complete_profile
from heron_cli.commands.file_arguments import file_arguments, keys_option
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, verbose_option
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.loading.stored_program import StoredProgram, stored_program
from heron_cli.launch.target import Target, parse_target, user_name
from heron_cli.profiles import ENGINE, STORE
from heron_cli.topologies.environment import ProfileChoice, find_profile
from heron_cli.view.live.progress_output import progress
from heron_cli.view.text import echo, print_json

__all__ = ["PACKAGE_STEPS", "SUBMIT_STEPS", "submit"]

_ShowManifests = Callable[[ProfileChoice, Target, LoadingTopology, Interrupts], None]
_ShowPlan = Callable[[ProfileChoice, LoadingTopology, Interrupts, str | None, bool], None]

SUBMIT_STEPS = 5
"""The number of steps that are shown: loading, then those of `heron_cli.launch.submission.start_topology`."""
PACKAGE_STEPS = 3
"""The same without packing and uploading."""


@click.command(
    epilog="Exit codes: 0 submitted, 1 the state manager does not answer, 2 refused and nothing was changed, "
    "130 Ctrl-C and nothing was changed.",
)
@click.argument("where", metavar="PROFILE[/ROLE[/ENV]]", shell_complete=complete_profile)
@click.argument("target", metavar="[FILE[:NAME]]", required=False, shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@keys_option
@choice_options(engine=True)
@click.option("--dry-run", is_flag=True, help="Shows the plan and changes nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml"]),
    help="With --dry-run: writes the objects that the scheduler would make, for the tools of its cluster.",
)
@click.option("--deactivated", is_flag=True, help="Starts it paused, until `heron activate`.")
@click.option(
    "--from-checkpoint",
    metavar="RUN/NUMBER|latest",
    default="",
    help="Starts with the state of a checkpoint, see `heron checkpoints`.",
)
@click.option(
    "--package",
    metavar="NAME:TAG",
    help="Starts this stored package instead of a file, with the arguments it was packed with; see `heron packages`.",
)
@json_option
@verbose_option
@click.pass_context
def submit(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    where: str,
    target: str | None,
    arguments: tuple[str, ...],
    keys: tuple[str, ...],
    options: ChoiceOptions,
    dry_run: bool,
    output: str | None,
    deactivated: bool,
    from_checkpoint: str,
    package: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Starts the topology of a file, or of a stored package, and returns; it runs until it is finished or killed.

    ROLE and ENV are labels for its owner and its purpose; the defaults are your user name and "default". NAME chooses
    one of several topologies in the file. ARGS are the file's own sys.argv. A compat plugin may read other files than
    Python's, such as jars.
    """
    if (target is None) == (package is None):
        msg = f"FILE {target!r:.80} and --package {package!r:.80}: give one of the two; ARGS belong to FILE"
        raise UsageError(msg)
    labels = parse_target(where, user_name())
    choice = options.choose(labels.profile)
    arguments = file_arguments(context, target, keys, arguments)
    with (
        Interrupts() as interrupts,
        _program(choice, target, package, interrupts) as program,
        LoadingTopology(program, arguments, verbose=verbose) as loading,
    ):
        if dry_run and from_checkpoint:
            msg = f"--from-checkpoint {from_checkpoint!r:.80}: --dry-run does not check it; give one of the two"
            raise UsageError(msg)
        if output and not dry_run:
            msg = f"-o {output} writes what a submission would make; give --dry-run too"
            raise UsageError(msg)
        if output:
            show = cast("_ShowManifests", load_object("heron_cli.commands.manifests:show_manifests"))
            show(choice, labels, loading, interrupts)
        elif dry_run:
            show_plan = cast("_ShowPlan", load_object("heron_cli.commands.plan:show_plan"))
            show_plan(choice, loading, interrupts, None, as_json)
            echo("dry run: nothing was changed", err=True)
        else:
            steps = PACKAGE_STEPS if package else SUBMIT_STEPS
            start = _Start(deactivated, from_checkpoint, steps)
            _print(_submit(choice, labels, loading, interrupts, start), as_json=as_json)


def _program(
    choice: ProfileChoice, target: str | None, package: str | None, interrupts: Interrupts
) -> AbstractContextManager[str | StoredProgram]:
    """Return what to load: FILE, or the program of a stored package."""
    if target is not None:
        return nullcontext(target)
    assert package is not None  # noqa: S101  # one of the two is given
    return stored_program(choice, package, interrupts.requested)


@dataclass(frozen=True, slots=True)
class _Start:
    deactivated: bool
    from_checkpoint: str
    steps: int


def _submit(
    choice: ProfileChoice, labels: Target, loading: LoadingTopology, interrupts: Interrupts, start: _Start
) -> SubmitResult:
    with progress(start.steps, interrupts.requested) as shown, Client(choice) as client:
        shown.step("loading the topology")
        loading.choose(find_profile(choice, (ENGINE, STORE)).choices)
        loaded = loading.result(interrupts.requested)
        return client.submit(
            loaded,
            role=labels.role,
            env=labels.env,
            deactivated=start.deactivated,
            from_checkpoint=start.from_checkpoint,
            progress=shown,
        )


def _print(result: SubmitResult, *, as_json: bool) -> None:
    run = result.run
    if as_json:
        document = {
            "topology": run.topology,
            "id": run.topology_id,
            "profile": run.profile,
            "role": run.role,
            "env": run.env,
            "deactivated": run.deactivated,
            "containers": result.containers,
            "logs": run.log_dir,
        }
        print_json(document)
        return
    how = " deactivated" if run.deactivated else ""
    echo(f"{run.topology} submitted{how} as {run.topology_id} in {result.containers} containers; logs: {run.log_dir}")
