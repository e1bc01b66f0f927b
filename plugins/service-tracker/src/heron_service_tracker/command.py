"""``heron tracker``: serves the topologies of profiles over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from heron.errors import UsageError, known, nearest
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import DEFAULT_PROFILE, config_path_option
from heron_cli.profiles import profile_names
from heron_service_tracker.access import Access
from heron_service_tracker.access_token import read_token
from heron_service_tracker.address import Address, parse_address
from heron_service_tracker.service import TrackerOptions, serve

__all__ = ["tracker"]

_ACCESS = (
    click.option(
        "--address", default="127.0.0.1:8888", show_default=True, metavar="HOST:PORT", help="Where it listens."
    ),
    click.option("--token-file", type=click.Path(path_type=Path), help="A file of mode 0600 with the token."),
    click.option("--token-env", metavar="NAME", help="A variable of the environment with the token."),
    click.option("--without-token", is_flag=True, help="Answers anybody who reaches the address."),
    click.option("--host", "names", multiple=True, metavar="NAME", help="A further name of this machine; repeatable."),
)


def access_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the access to a command, which receives them together as `access`."""

    @wraps(command)
    def with_options(
        address: str,
        token_file: Path | None,
        token_env: str | None,
        names: tuple[str, ...],
        *,
        without_token: bool,
        **own: object,
    ) -> None:
        token = read_token(token_file, token_env)
        command(access=_access(parse_address(address), token, names, without_token=without_token), **own)

    wrapped: Callable[..., None] = with_options
    for option in reversed(_ACCESS):
        wrapped = option(wrapped)
    return wrapped


@click.command()
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    default=(DEFAULT_PROFILE,),
    show_default=True,
    shell_complete=complete_profile,
    help="A profile to show, as a cluster of that name; repeatable.",
)
@config_path_option
@click.option(
    "--period",
    "period_s",
    type=click.FloatRange(min=0.2, max=60.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often each topology is asked.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    default=Path("~/.heron/tracker"),
    show_default=True,
    metavar="DIR",
    help="The folder of the history.",
)
@click.option(
    "--history-mib",
    type=click.IntRange(min=8, max=1024 * 1024),
    default=512,
    show_default=True,
    metavar="MIB",
    help="The bound of its file.",
)
@click.option("--without-history", is_flag=True, help="Keeps no history.")
@access_options
def tracker(
    profiles: tuple[str, ...],
    config_path: Path | None,
    period_s: float,
    history: Path,
    history_mib: int,
    access: Access,
    *,
    without_history: bool,
) -> None:
    """Serves the topologies of profiles over HTTP, until Ctrl-C. It changes no topology.

    An address that other machines reach needs a token, or --without-token.
    """
    folder = None if without_history else history.expanduser()
    names = _checked(profiles, config_path)
    serve(TrackerOptions(names, access, config_path, period_s, folder, history_mib * 1024 * 1024), _ready)


def _access(address: Address, token: str, names: tuple[str, ...], *, without_token: bool) -> Access:
    if without_token and token:
        msg = "--without-token and a token exclude each other; give one of them"
        raise UsageError(msg)
    if not (address.loopback or token or without_token):
        msg = (
            f"other machines reach {address.host}: give --token-file FILE or --token-env NAME, or --without-token to "
            "answer anybody"
        )
        raise UsageError(msg)
    return Access(address, token, names)


def _checked(profiles: tuple[str, ...], config_path: Path | None) -> tuple[str, ...]:
    names = profile_names(config_path)
    for each in profiles:
        if each not in names:
            msg = f"profile {each!r} does not exist{nearest(each, names)}; known: {known(names)}"
            raise UsageError(msg)
    return tuple(dict.fromkeys(profiles))


def _ready(address: Address) -> None:
    host = f"[{address.host}]" if ":" in address.host else address.host
    click.echo(f"heron: tracker at http://{host}:{address.port}/api/v1/topologies", err=True)
