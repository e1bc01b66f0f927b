"""``heron packages``: lists and tags stored packages, and removes those that no topology uses and no tag keeps."""

from __future__ import annotations

from collections.abc import Iterable

import click

from heron.driver_kit.redaction import redact_for_command
from heron.spi.uploader import PackageEntry
from heron_cli.client.client import Client
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, profile_option
from heron_cli.topologies.package_store import StoredPackage
from heron_cli.view.text import columns, counted, echo, format_age, format_bytes, print_json

__all__ = ["packages"]

_DAY_S = 86400.0
_EXIT_FAILED = 1

_profile = profile_option("The profile whose packages are listed or removed.")


@click.group()
def packages() -> None:
    """Lists, tags and removes stored packages."""


@packages.command("list")
@_profile
@choice_options(without=False)
@json_option
def list_packages(profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Lists the packages that a profile's uploader stores, youngest first, and which topologies use them."""
    with Client(options.choose(profile)) as client:
        found = client.packages()
    if as_json:
        print_json([_fields(each) for each in found])
        return
    for each in found:
        entry = each.package
        state = f"in use by {each.topology}" if each.topology else ("" if entry.whole else "unfinished")
        size, age = format_bytes(entry.size_bytes), format_age(entry.age_s)
        tags = f"  {', '.join(entry.tags)}" if entry.tags else ""
        echo(f"{entry.name:<30}  {size:>9}  {age:>8}  {state:<20}  {entry.uri}{tags}")
    echo(f"{counted(len(found), 'package')}, {format_bytes(_total(each.package for each in found))}")


@packages.command()
@click.argument("reference", metavar="NAME:TAG|NAME:VERSION")
@_profile
@choice_options(without=False)
@json_option
def show(reference: str, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Shows one package; VERSION is the first 8 digits of its SHA-256 or more."""
    with Client(options.choose(profile)) as client:
        found = client.package_store().find(reference)
    if as_json:
        print_json(_fields(found))
        return
    entry = found.package
    rows = [
        ("name", entry.name),
        ("version", entry.version),
        ("tags", ", ".join(entry.tags) or "none"),
        ("size", format_bytes(entry.size_bytes)),
        ("age", format_age(entry.age_s)),
        ("in use by", found.topology or "no topology of this profile"),
        ("uri", entry.uri),
    ]
    for line in columns(rows):
        echo(line)


@packages.command()
@click.argument("reference", metavar="NAME:TAG|NAME:VERSION")
@click.argument("tag")
@_profile
@choice_options(without=False)
def tag(reference: str, tag: str, profile: str, options: ChoiceOptions) -> None:
    """Lets TAG mean this package from now on, and keeps the package; a rollback is the same with an older version."""
    with Client(options.choose(profile)) as client:
        found = client.package_store().tag(reference, tag)
    echo(f"{found.name}:{tag} is version {found.version[:12]}")


@packages.command()
@click.argument("reference", metavar="NAME:TAG")
@_profile
@choice_options(without=False)
def untag(reference: str, profile: str, options: ChoiceOptions) -> None:
    """Removes a tag, so that it keeps its package no longer; the package stays."""
    with Client(options.choose(profile)) as client:
        client.package_store().untag(reference)
    echo(f"{reference} is removed")


@packages.command()
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0.0),
    default=7.0,
    show_default=True,
    metavar="DAYS",
    help="Keeps younger packages.",
)
@click.option(
    "--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keeps the N youngest packages of each name."
)
@click.option("--dry-run", is_flag=True, help="Only shows what would be removed.")
@_profile
@choice_options(without=False)
@json_option
@click.pass_context
def prune(
    context: click.Context,
    days: float,
    keep: int,
    dry_run: bool,
    profile: str,
    options: ChoiceOptions,
    as_json: bool,
) -> None:
    """Removes the packages that no topology of the profile's state manager uses, and that have no tag but `latest`.

    It does not see topologies of other state managers: where several state managers share a store, give each its own
    place there. Exit codes: 0 done, 1 some packages could not be removed.
    """
    with Client(options.choose(profile)) as client:
        result = client.prune_packages(older_than_s=days * _DAY_S, keep=keep, dry_run=dry_run)
    failed = {uri: redact_for_command(reason) for uri, reason in result.failed.items()}
    if as_json:
        print_json({"dry_run": dry_run, "removed": [each.uri for each in result.removed], "failed": failed})
    else:
        for each in result.removed:
            echo(f"{'would remove' if dry_run else 'removed'} {each.uri}")
        for uri, reason in failed.items():
            echo(f"heron: {uri} stays: {reason}", err=True)
        verb = "would be removed" if dry_run else "removed"
        echo(f"{counted(len(result.removed), 'package')} {verb}, {format_bytes(_total(result.removed))}")
    context.exit(_EXIT_FAILED if failed else 0)


def _fields(stored: StoredPackage) -> dict[str, object]:
    entry = stored.package
    return {
        "uri": entry.uri,
        "name": entry.name,
        "size_bytes": entry.size_bytes,
        "age_s": round(entry.age_s, 1),
        "whole": entry.whole,
        "topology": stored.topology or None,
        "version": entry.version or None,
        "tags": entry.tags,
    }


def _total(entries: Iterable[PackageEntry]) -> int:
    return sum(each.size_bytes for each in entries)
