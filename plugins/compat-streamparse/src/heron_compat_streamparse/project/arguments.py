"""The program arguments of a topology: the flags of ``sparse run`` and ``sparse submit`` that have a meaning here."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from heron.errors import UsageError
from heron_compat_streamparse.project.storm_options import ACKERS, WORKERS

__all__ = ["Arguments", "parse_arguments"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The environment, the name of the topology and the options, as given after ``--``."""

    environment: str | None = None
    name: str | None = None
    options: dict[str, object] = field(default_factory=dict)


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Return the arguments.

    Raises:
        UsageError: when an argument is unknown or has the wrong form.
    """
    parser = _Parser(prog="heron run FILE --", allow_abbrev=False, add_help=False)
    parser.add_argument("-e", "--environment")
    parser.add_argument("-N", "--override_name", dest="name")
    parser.add_argument("-o", "--option", dest="options", action="append", default=[], type=_option)
    for flag, name, key in (("-w", "--workers", WORKERS), ("-a", "--ackers", ACKERS)):
        parser.add_argument(flag, name, dest="options", action="append", type=partial(_number_option, key))
    parser.add_argument("-d", "--debug", dest="options", action="append_const", const=("topology.debug", True))
    given = parser.parse_args(argv)
    return Arguments(given.environment, given.name, dict(given.options))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = (
            f"arguments of the topology: {message}; known: -e ENVIRONMENT, -o KEY=VALUE, -w WORKERS, -a ACKERS, "
            "-N NAME, -d"
        )
        raise UsageError(msg)


def _number_option(key: str, text: str) -> tuple[str, object]:
    try:
        return key, int(text)
    except ValueError:
        msg = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(msg) from None


def _option(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        msg = f"{text!r} is not of the form KEY=VALUE"
        raise argparse.ArgumentTypeError(msg)
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
