"""``heron packages``: what is stored for topologies, and removing what none uses any longer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.driver_kit.redaction import redact_for_command
from heron.errors import PackageError, StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import NodeKind, StateManager
from heron.spi.uploader import PackageEntry, Uploader
from heron.state_nodes.execution_state import decode_execution_state
from heron_cli.client.discovery import is_name
from heron_cli.client.retention import merged, prunable
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.profiles import Profile
from heron_cli.view.json_text import print_json
from heron_cli.view.view import spoken_bytes

__all__ = ["packages"]

_DAY_S = 86400.0
_EXIT_FAILED = 1

_profile = click.option(
    "--profile", default="local", show_default=True, shell_complete=complete_profile, help="Whose packages."
)
_config_path = click.option(
    "--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first."
)
_settings = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Prints JSON.")


@dataclass(frozen=True, slots=True)
class _Store:
    """The packages of a profile, and the topologies that use them."""

    statemgr: StateManager
    uploader: Uploader

    def in_use(self) -> dict[str, str]:
        """The topology that uses a package, by its URI.

        Raises:
            StateError: when one of them cannot be read: then nobody knows what it uses.
        """
        used = {}
        for topology in self.statemgr.list(NodeKind.EXECUTION_STATE):
            if uri := self.used_by(topology):
                used[uri] = topology
        return used

    def used_by(self, topology: str) -> str:
        """The URI of its package, or "" when there is no such topology."""
        node = self.statemgr.get(NodeKind.EXECUTION_STATE, topology)
        return decode_execution_state(node.value, topology).package_uri if node else ""


@click.group()
def packages() -> None:
    """Lists and removes stored packages."""


@packages.command("list")
@_profile
@_config_path
@_settings
@_as_json
def list_packages(profile: str, config_path: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Lists the packages that a profile's uploader stores, youngest first, and which topologies use them."""
    with _opened(find_profile(profile, config_path, parse_overrides(settings))) as store:
        used = store.in_use()
        found = merged(store.uploader.packages())
    if as_json:
        print_json([_fields(each, used.get(each.uri)) for each in found])
        return
    for each in found:
        state = f"in use by {used[each.uri]}" if each.uri in used else ("" if each.whole else "unfinished")
        size, age = spoken_bytes(each.size_bytes), _spoken_age(each.age_s)
        print(f"{each.name:<30}  {size:>9}  {age:>8}  {state:<20}  {each.uri}")
    print(f"{len(found)} package{'' if len(found) == 1 else 's'}, {spoken_bytes(_total(found))}")


@packages.command()
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0.0),
    default=7.0,
    show_default=True,
    metavar="DAYS",
    help="Younger ones stay.",
)
@click.option("--keep", type=click.IntRange(min=0), default=0, metavar="N", help="The N youngest of each name stay.")
@click.option("--dry-run", is_flag=True, help="Only says what would be removed.")
@_profile
@_config_path
@_settings
@_as_json
@click.pass_context
def prune(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    days: float,
    keep: int,
    dry_run: bool,
    profile: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Removes the packages that no topology of the profile's state manager uses.

    Topologies that another state manager knows are not seen: where several share a store, give each a place of its
    own there. Exit codes: 0 done, 1 some could not be removed.
    """
    with _opened(find_profile(profile, config_path, parse_overrides(settings))) as store:
        chosen = prunable(store.uploader.packages(), store.in_use(), days * _DAY_S, keep)
        failed = {} if dry_run else _remove(store, chosen)
    removed = tuple(each for each in chosen if each.uri not in failed)
    if as_json:
        print_json({"dry_run": dry_run, "removed": [each.uri for each in removed], "failed": failed})
    else:
        for each in removed:
            print(f"{'would remove' if dry_run else 'removed'} {each.uri}")
        for uri, reason in failed.items():
            click.echo(f"heron: {uri} stays: {reason}", err=True)
        verb = "would be removed" if dry_run else "removed"
        print(f"{len(removed)} package{'' if len(removed) == 1 else 's'} {verb}, {spoken_bytes(_total(removed))}")
    context.exit(_EXIT_FAILED if failed else 0)


def _remove(store: _Store, chosen: tuple[PackageEntry, ...]) -> dict[str, str]:
    """Removes them one by one; returns why some stayed, by URI."""
    failed = {}
    gone = ""
    for each in chosen:
        try:
            if reason := gone or _remove_one(store, each):
                failed[each.uri] = reason
        except StateUnavailableError as error:
            gone = failed[each.uri] = redact_for_command(str(error))  # nor does it answer for those that follow
        except (StateError, PackageError) as error:
            failed[each.uri] = redact_for_command(str(error))
    return failed


def _remove_one(store: _Store, entry: PackageEntry) -> str:
    """Removes it, or says who needs it."""
    if not is_name(entry.name):  # no topology can be called so
        store.uploader.undo(entry.uri)
        return ""
    try:
        # A command that submits this topology has its lock from before the upload until the state says so.
        hold = store.statemgr.hold(NodeKind.LOCK, entry.name, b"heron packages prune")
    except StateConflictError:
        return f"another command is at work on topology {entry.name!r}; try again later"
    try:
        if store.used_by(entry.name) == entry.uri:
            return f"topology {entry.name!r} uses it now"
        store.uploader.undo(entry.uri)
    finally:
        hold.release()
    return ""


@contextmanager
def _opened(profile: Profile) -> Iterator[_Store]:
    statemgr = open_statemgr(profile.statemgr)
    try:
        yield _Store(statemgr, open_driver(profile.uploader, Uploader))
    finally:
        statemgr.close()


def _fields(entry: PackageEntry, topology: str | None) -> dict[str, object]:
    return {
        "uri": entry.uri,
        "name": entry.name,
        "size_bytes": entry.size_bytes,
        "age_s": round(entry.age_s, 1),
        "whole": entry.whole,
        "topology": topology,
    }


def _total(entries: tuple[PackageEntry, ...]) -> int:
    return sum(each.size_bytes for each in entries)


def _spoken_age(age_s: float) -> str:
    for unit_s, unit in ((_DAY_S, "d"), (3600.0, "h"), (60.0, "min")):
        if age_s >= unit_s:
            return f"{age_s / unit_s:.0f} {unit}"
    return f"{age_s:.0f} s"
