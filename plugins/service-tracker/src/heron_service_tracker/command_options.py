"""The options of commands that serve a tracker: ``heron tracker``, and those of other distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypedDict, Unpack

import click

from heron.errors import UsageError, known, nearest
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import DEFAULT_PROFILE, config_path_option, set_option, without_option
from heron_cli.profiles import profile_names
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.access_token import read_token
from heron_service_tracker.http.address import Address, parse_address
from heron_service_tracker.service import TrackerOptions

__all__ = ["url_of", "with_tracker_options"]

Command = Callable[..., None]


class _Watched(TypedDict):
    """The values of `_WATCHED`."""

    profiles: tuple[str, ...]
    config_path: Path | None
    settings: tuple[str, ...]
    without: tuple[str, ...]
    period_s: float
    logs: bool
    tuples: bool
    of_run: bool


_WATCHED = (
    click.option(
        "--profile",
        "profiles",
        multiple=True,
        default=(DEFAULT_PROFILE,),
        show_default=True,
        shell_complete=complete_profile,
        help="A profile to show, as a cluster of that name; repeatable.",
    ),
    config_path_option,
    set_option,
    without_option,
    click.option(
        "--period",
        "period_s",
        type=click.FloatRange(min=0.2, max=60.0),
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="How often each topology is asked.",
    ),
    click.option("--logs", is_flag=True, help="Shows the logs of tasks, too."),
    click.option("--tuples", is_flag=True, help="Shows tuples, too, of topologies that allow it."),
    click.option("--of-run", is_flag=True, hidden=True, help="Serves the page of `heron run --ui`, and ends with it."),
)
_KEPT = (
    click.option(
        "--history",
        type=click.Path(path_type=Path),
        default=Path("~/.heron/tracker"),
        show_default=True,
        metavar="DIR",
        help="The folder of the history.",
    ),
    click.option(
        "--history-mib",
        type=click.IntRange(min=8, max=1024 * 1024),
        default=512,
        show_default=True,
        metavar="MIB",
        help="The bound of its file.",
    ),
    click.option("--without-history", is_flag=True, help="Keeps no history."),
)
_AUDIT_FILE = "actions.jsonl"

_ACCESS = (
    click.option("--token-file", type=click.Path(path_type=Path), help="A file of mode 0600 with the token."),
    click.option("--token-env", metavar="NAME", help="A variable of the environment with the token."),
    click.option("--without-token", is_flag=True, help="Answers anybody who reaches the address."),
    click.option("--allow-actions", is_flag=True, help="Lets requests with the token change topologies."),
    click.option("--host", "names", multiple=True, metavar="NAME", help="A further name of this machine; repeatable."),
)


def with_tracker_options(address: str) -> Callable[[Command], Command]:
    """Add the options to a command, which receives a `TrackerOptions` as `options`; `address` is the default."""
    where = click.option("--address", default=address, show_default=True, metavar="HOST:PORT", help="Where it listens.")

    def add(command: Command) -> Command:
        @_with_access
        @wraps(command)
        def with_options(
            history: Path,
            history_mib: int,
            access: Access,
            *,
            without_history: bool,
            allow_actions: bool,
            **watched: Unpack[_Watched],
        ) -> None:
            if allow_actions and not access.token:
                msg = "--allow-actions needs --token-file or --token-env: every user of this machine can send requests"
                raise UsageError(msg)
            config_path = watched["config_path"]
            options = TrackerOptions(
                profiles=_checked(watched["profiles"], config_path),
                access=access,
                config_path=config_path,
                period_s=watched["period_s"],
                history=None if without_history else history.expanduser(),
                history_bytes=history_mib * 1024 * 1024,
                overrides=_overrides(watched["settings"]),
                without=watched["without"],
                logs=watched["logs"],
                tuples=watched["tuples"],
                of_run=watched["of_run"],
                audit=history.expanduser() / _AUDIT_FILE if allow_actions else None,
            )
            command(options=options)

        wrapped: Command = with_options
        for option in reversed((where, *_WATCHED, *_KEPT, *_ACCESS)):
            wrapped = option(wrapped)
        return wrapped

    return add


def url_of(address: Address) -> str:
    """Return the URL of an address, without a path."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}"


def _with_access(command: Command) -> Command:
    """Turn the options of the access into `access`."""

    @wraps(command)
    def with_access(
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

    return with_access


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


def _overrides(settings: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not (key and equals):
            msg = f"--set {each}: not of the form KEY=VALUE, such as run.log_dir=/logs"
            raise UsageError(msg)
        if key in found:
            msg = f"--set {key}: given twice; give it once"
            raise UsageError(msg)
        found[key] = value
    return found
