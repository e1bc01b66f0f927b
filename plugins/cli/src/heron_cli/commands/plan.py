"""``heron plan``: shows what would run where, and runs nothing."""

from __future__ import annotations

import click

from heron.spi.engine import PipelineChoices
from heron_cli.commands.completion import complete_file
from heron_cli.commands.file_arguments import file_arguments, keys_option
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, profile_option, verbose_option
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.launch.prepare import plan_target
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.view.console import open_console
from heron_cli.view.plan_tree import plan_document, plan_tree
from heron_cli.view.text import print_json

__all__ = ["plan", "show_plan"]


@click.command()
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@keys_option
@profile_option("The profile under which it would run.")
@click.option("--packing", metavar="NAME", help="Packs with this driver instead of the profile's.")
@choice_options(engine=True)
@json_option
@verbose_option
@click.pass_context
def plan(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    target: str,
    arguments: tuple[str, ...],
    keys: tuple[str, ...],
    profile: str,
    packing: str | None,
    options: ChoiceOptions,
    as_json: bool,
    verbose: bool,
) -> None:
    """Shows the logical, packing and physical plan of the topology of a Python file; runs and changes nothing."""
    choice = options.choose(profile)  # a mistake here must not start the author's file
    arguments = file_arguments(context, target, keys, arguments)
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
        show_plan(choice, loading, interrupts, packing, as_json)


def show_plan(
    choice: ProfileChoice, loading: LoadingTopology, interrupts: Interrupts, packing: str | None, as_json: bool
) -> None:
    """Print the plan of the topology that is being loaded; `packing` names a driver instead of the profile's."""

    def load(choices: PipelineChoices) -> LoadedTopology:
        loading.choose(choices)
        return loading.result(interrupts.requested)

    prepared = plan_target(choice, load, packing)
    if as_json:
        print_json(plan_document(prepared))
    else:
        open_console().print(plan_tree(prepared))
