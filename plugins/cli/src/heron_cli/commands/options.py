"""The options that commands share, and the client that they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import click
from click.core import ParameterSource

from heron.driver_kit.loading import load_object
from heron.errors import HeronError, UsageError, known
from heron_cli.catalog.other_plugins import check_without
from heron_cli.commands.completion import complete_profile, complete_topology
from heron_cli.profile_client import ProfileClient
from heron_cli.profiles import profile_names
from heron_cli.profiles.overrides import parse_overrides
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.topologies.profile_search import profiles_running
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.view.text import echo

if TYPE_CHECKING:
    from heron_cli.client.client import Client

__all__ = [
    "DEFAULT_PROFILE",
    "ChoiceOptions",
    "RemoteOptions",
    "choice_options",
    "choose",
    "config_path_option",
    "engine_option",
    "json_option",
    "profile_option",
    "remote_options",
    "set_option",
    "timeout_option",
    "topology_argument",
    "verbose_option",
    "without_option",
]

C = TypeVar("C", bound=ProfileClient)

Command = Callable[..., None]
Decorator = Callable[[Command], Command]

DEFAULT_PROFILE = "local"

_CLIENT = "heron_cli.client.client:Client"
"""Loaded by name because most commands need only a part of it, and begin 100 ms earlier without the rest."""

topology_argument = click.argument("name", shell_complete=complete_topology)
config_path_option = click.option(
    "--config-path", type=click.Path(path_type=Path), help="A folder of profiles that is searched first."
)
set_option = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable."
)
without_option = click.option(
    "--without", metavar="NAME", multiple=True, help="Switches off a plugin: NAME or FAMILY.NAME; repeatable."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
engine_option = click.option(
    "--engine", metavar="NAME", help="Runs a pipeline on this engine instead of the profile's: heron, spark-batch, …"
)
verbose_option = click.option("--verbose", is_flag=True, help="Shows the traceback when FILE does not load.")


def profile_option(meaning: str) -> Decorator:
    """Return the option ``--profile`` with a help text."""
    return click.option(
        "--profile", default=DEFAULT_PROFILE, show_default=True, shell_complete=complete_profile, help=meaning
    )


def choose(
    profile: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    without: tuple[str, ...] = (),
    engine: str | None = None,
) -> ProfileChoice:
    """Return the choice of a profile that these options make; ``--engine NAME`` is ``--set engine.driver=NAME``.

    Raises:
        UsageError: when a setting does not have the form KEY=VALUE.
        PluginError: when `without` names no installed plugin.
    """
    check_without(without)
    if engine is not None:
        settings = (*settings, f"engine.driver={engine}")
    return ProfileChoice(profile, config_path, parse_overrides(settings), without)


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """The options with which one command changes a profile; nothing is checked yet."""

    config_path: Path | None
    settings: tuple[str, ...]
    without: tuple[str, ...] = ()
    engine: str | None = None

    def choose(self, profile: str) -> ProfileChoice:
        """Return the profile with these changes. Raises as the function `choose` does."""
        return choose(profile, self.config_path, self.settings, self.without, self.engine)


def choice_options(*, engine: bool = False, without: bool = True) -> Decorator:
    """Add the options that change a profile to a command, which receives them together as `options`."""
    added = (
        *((engine_option,) if engine else ()),
        config_path_option,
        set_option,
        *((without_option,) if without else ()),
    )

    def add(command: Command) -> Command:
        @wraps(command)
        def with_options(
            config_path: Path | None,
            settings: tuple[str, ...],
            without: tuple[str, ...] = (),
            engine: str | None = None,
            **own: object,
        ) -> None:
            command(options=ChoiceOptions(config_path, settings, without, engine), **own)

        wrapped: Command = with_options
        for option in reversed(added):
            wrapped = option(wrapped)
        return wrapped

    return add


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """The options of commands about one topology: its profile, the time limit, and how to print the answer.

    `given` is whether the user named the profile.
    """

    choice: ProfileChoice
    timeout_s: float
    as_json: bool
    given: bool = True

    def connect(self, topology: str = "") -> Client:
        """Open a client of the profile.

        With the name of a topology, and when the user named no profile, use the only profile under which it runs.

        Raises:
            HeronError: as `heron_cli.client.connect` does.
            UsageError: when the topology runs under several other profiles, or with `--set` under another one.
        """
        return self._connected(cast("type[Client]", load_object(_CLIENT)), topology)

    def open(self, topology: str = "") -> ProfileClient:
        """As `connect`, with the questions and changes that most commands need; sooner."""
        return self._connected(ProfileClient, topology)

    @contextmanager
    def topology(self, name: str) -> Iterator[RemoteTopology]:
        """Connect to a running topology for this block. Raises as `connect` does."""
        with self.open(name) as client, client.topology(name, timeout_s=self.timeout_s) as topology:
            yield topology

    def _connected(self, kind: type[C], topology: str) -> C:
        client = kind(self.choice)
        if not topology:
            return client
        try:
            other = _other_profile(client, self.choice, topology, given=self.given)
        except BaseException:
            client.close()
            raise
        if not other:
            return client
        client.close()
        echo(f"heron: note: topology {topology!r} runs under profile {other!r}", err=True)
        return kind(replace(self.choice, name=other))


def _other_profile(client: ProfileClient, choice: ProfileChoice, topology: str, *, given: bool) -> str:
    """Return the profile to use instead of the chosen one, or ""."""
    if topology in client.names():
        others = _submitted_with(client, choice, topology)
    else:
        others = tuple(each for each in profiles_running(topology, choice) if each != choice.name)
    if not others:
        return ""
    changed = choice.overrides.profile or choice.overrides.topology
    if not given and len(others) == 1 and not changed:
        return others[0]
    places = " or ".join(f"`--profile {each}`" for each in others)
    msg = f"topology {topology!r} is not in profile {choice.name!r}; it runs under {known(others)}: give {places}"
    raise UsageError(msg)


def _submitted_with(client: ProfileClient, choice: ProfileChoice, topology: str) -> tuple[str, ...]:
    """Return the other profile that submitted a topology of the client's state manager, if the profile exists."""
    with suppress(HeronError), client.topology(topology) as remote:
        profile = remote.run.profile
        if profile != choice.name and profile in profile_names(choice.config_path):
            return (profile,)
    return ()


def timeout_option(timeout_s: float, timeout_help: str) -> Decorator:
    """Add ``--timeout`` to a command that waits for an answer; the variable HERON_TIMEOUT replaces its default."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0.0, min_open=True),
        default=timeout_s,
        show_default=True,
        envvar="HERON_TIMEOUT",
        show_envvar=True,
        metavar="SECONDS",
        help=timeout_help,
    )


def remote_options(timeout_s: float, timeout_help: str = "The longest wait for an answer.") -> Decorator:
    """Add the options to a command, which receives them together as `options`."""
    added = (
        profile_option("The profile under which it runs."),
        config_path_option,
        set_option,
        without_option,
        timeout_option(timeout_s, timeout_help),
        json_option,
    )

    def add(command: Command) -> Command:
        @wraps(command)
        def with_options(  # one parameter for each option
            profile: str,
            config_path: Path | None,
            settings: tuple[str, ...],
            without: tuple[str, ...],
            timeout: float,
            *,
            as_json: bool,
            **own: object,
        ) -> None:
            source = click.get_current_context().get_parameter_source("profile")
            given = source is not ParameterSource.DEFAULT
            choice = choose(profile, config_path, settings, without)
            command(options=RemoteOptions(choice, timeout, as_json, given), **own)

        wrapped: Command = with_options
        for option in reversed(added):
            wrapped = option(wrapped)
        return wrapped

    return add
