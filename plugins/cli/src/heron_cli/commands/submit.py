"""``heron submit``: starts a topology that runs on when the command and its terminal are gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron_cli.client.client import Client, SubmitResult
from heron_cli.commands.completion import complete_file, complete_profile
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, verbose_option
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.target import Target, parse_target, user_name
from heron_cli.profiles import ENGINE, STORE
from heron_cli.topologies.environment import ProfileChoice, find_profile
from heron_cli.view.live.progress_output import progress
from heron_cli.view.text import echo, print_json

__all__ = ["SUBMIT_STEPS", "submit"]

_ShowManifests = Callable[[ProfileChoice, Target, LoadingTopology, Interrupts], None]
_ShowPlan = Callable[[ProfileChoice, LoadingTopology, Interrupts, str | None, bool], None]

SUBMIT_STEPS = 5
"""The number of steps that are shown: loading, then those of `heron_cli.launch.submission.start_topology`."""


@click.command(
    epilog="Exit codes: 0 submitted, 1 the state manager does not answer, 2 refused and nothing was changed, "
    "130 Ctrl-C and nothing was changed.",
)
@click.argument("where", metavar="PROFILE[/ROLE[/ENV]]", shell_complete=complete_profile)
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
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
@json_option
@verbose_option
def submit(  # noqa: PLR0913, PLR0917 - one parameter for each option
    where: str,
    target: str,
    arguments: tuple[str, ...],
    options: ChoiceOptions,
    dry_run: bool,
    output: str | None,
    deactivated: bool,
    from_checkpoint: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Starts the topology of a Python file and returns; the topology runs until it is finished or killed.

    ROLE and ENV are labels for its owner and its purpose; the defaults are your user name and "default". NAME chooses
    one of several topologies in the file. ARGS are the file's own sys.argv.
    """
    labels = parse_target(where, user_name())
    choice = options.choose(labels.profile)
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
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
            _print(_submit(choice, labels, loading, interrupts, _Start(deactivated, from_checkpoint)), as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Start:
    deactivated: bool
    from_checkpoint: str


def _submit(
    choice: ProfileChoice, labels: Target, loading: LoadingTopology, interrupts: Interrupts, start: _Start
) -> SubmitResult:
    with progress(SUBMIT_STEPS, interrupts.requested) as shown, Client(choice) as client:
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
