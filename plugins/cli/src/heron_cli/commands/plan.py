"""``heron plan``: what would run where, without running anything."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from heron.driver_kit.loading import open_driver
from heron.spi.packing import Packing
from heron_cli.commands.completion import complete_file, complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.loaded import LoadingTopology
from heron_cli.launch.prepare import find_profile, packed_by, prepare
from heron_cli.view.json_text import print_json
from heron_cli.view.plan_tree import plan_document, plan_tree

__all__ = ["plan"]


@click.command()
@click.argument("target", metavar="FILE[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--profile", default="local", show_default=True, shell_complete=complete_profile, help="Where it would run."
)
@click.option("--packing", metavar="NAME", help="Packs with this driver instead of the profile's.")
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
@click.option("--verbose", is_flag=True, help="Shows the traceback where FILE does not load.")
def plan(  # noqa: PLR0913, PLR0917 - one parameter for each option
    target: str,
    arguments: tuple[str, ...],
    profile: str,
    packing: str | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> None:
    """Shows the logical, packing and physical plan of the topology of a Python file; runs and changes nothing."""
    overrides = parse_overrides(settings)
    with Interrupts() as interrupts, LoadingTopology(target, arguments, verbose=verbose) as loading:
        found = find_profile(profile, config_path, overrides)
        if packing is not None:
            found = packed_by(packing, found, overrides)
        prepared = prepare(loading.result(interrupts.requested), found, overrides)
    limits = open_driver(found.packing, Packing).limits(prepared.loaded.definition)
    if as_json:
        print_json(plan_document(prepared, found.packing.name, limits))
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(plan_tree(prepared, found.packing.name, limits))
