"""The options that all commands about running topologies have, and the topology that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron_cli.client.remote_topology import RemoteTopology
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile

__all__ = ["Remote", "RemoteOptions", "open_remote", "remote_options"]

Command = Callable[..., None]

_ANSWER = "How long an answer may take."


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Where the topology runs, how long an answer may take, and how it is printed."""

    profile: str
    config_path: Path | None
    settings: tuple[str, ...]
    timeout_s: float
    as_json: bool


@dataclass(frozen=True, slots=True)
class Remote:
    """A topology, and what of its environment commands need beside it."""

    topology: RemoteTopology
    scheduler: Scheduler
    statemgr: StateManager
    profile: str
    log_root: Path


def remote_options(timeout_s: float, timeout_help: str = _ANSWER) -> Callable[[Command], Command]:
    """Adds the options to a command, which is given them together as `options`."""
    added = (
        click.option(
            "--profile", default="local", show_default=True, shell_complete=complete_profile, help="Where it runs."
        ),
        click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first."),
        click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides a setting; repeatable."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0.0, min_open=True),
            default=timeout_s,
            show_default=True,
            metavar="SECONDS",
            help=timeout_help,
        ),
        click.option("--json", "as_json", is_flag=True, help="Prints JSON."),
    )

    def add(command: Command) -> Command:
        @wraps(command)
        def with_options(  # one parameter for each option
            profile: str,
            config_path: Path | None,
            settings: tuple[str, ...],
            timeout: float,
            *,
            as_json: bool,
            **own: object,
        ) -> None:
            command(options=RemoteOptions(profile, config_path, settings, timeout, as_json), **own)

        wrapped: Command = with_options
        for option in reversed(added):
            wrapped = option(wrapped)
        return wrapped

    return add


@contextmanager
def open_remote(name: str, options: RemoteOptions) -> Iterator[Remote]:
    """The topology of that name under a profile; nothing is asked yet.

    Raises:
        ConfigError: when the profile or one of its drivers' options is wrong.
        PluginError: when a driver does not load.
    """
    profile = find_profile(options.profile, options.config_path, parse_overrides(options.settings))
    statemgr = open_statemgr(profile.statemgr)
    try:
        scheduler = open_driver(profile.scheduler, Scheduler)
        with RemoteTopology(statemgr, scheduler, name, options.timeout_s) as topology:
            yield Remote(topology, scheduler, statemgr, profile.name, Path(profile.log_dir))
    finally:
        statemgr.close()
