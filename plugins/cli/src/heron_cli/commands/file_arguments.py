"""The arguments of the user's file: what stands behind it, and the keys of the system that it was written for."""

from __future__ import annotations

from collections.abc import Sequence

import click

from heron.errors import UsageError, known
from heron_cli.launch.loading.compat_plugin import PYTHON_SUFFIX
from heron_cli.launch.loading.loaded import split_target
from heron_cli.view.text import echo

__all__ = ["file_arguments", "keys_option"]

_KEY = "-c"

keys_option = click.option(
    _KEY,
    "keys",
    metavar="KEY=VALUE",
    multiple=True,
    help="Sets a key of the system that FILE was written for, as `storm jar` does; repeatable.",
)
"""The option of `storm jar`. Like any option, it may stand before FILE and behind its arguments."""


def file_arguments(
    context: click.Context, target: str | None, keys: Sequence[str], arguments: Sequence[str]
) -> tuple[str, ...]:
    """Return what the loader of the file gets: ``-c KEY=VALUE`` for each of `keys`, then `arguments`.

    Behind ``--`` a file may have arguments that are named as options of this command. For a file that is not Python a
    warning names them, because users of other systems give options there.

    Raises:
        UsageError: when `keys` are given to a Python file, or to a stored package.
    """
    path = split_target(target)[0] if target is not None else None
    if path is None or path.suffix == PYTHON_SUFFIX:
        if keys:
            what = "a stored package keeps those" if path is None else f"{path.name} is Python: it has none"
            key = keys[0].partition("=")[0]  # the value may be a secret
            msg = f"{_KEY} {key!r:.80} sets a key of the system that a file was written for, and {what}; use --set"
            raise UsageError(msg)
        return tuple(arguments)
    names = {name for each in context.command.params if isinstance(each, click.Option) for name in each.opts} - {_KEY}
    if own := names.intersection(each.partition("=")[0] for each in arguments):
        echo(
            f"heron: warning: {known(own)} behind `--`: goes to the program in {path.name}; options of heron stand in "
            "front of `--`",
            err=True,
        )
    return (*(part for each in keys for part in (_KEY, each)), *arguments)
