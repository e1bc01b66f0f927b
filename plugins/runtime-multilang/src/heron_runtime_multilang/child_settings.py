"""What `spec` takes about a child process, and what the task makes of it.

The settings travel in the configuration of the component, under the key `CONFIG_KEY`.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal, TypedDict

from heron.api import Stream
from heron.author_text import short_text
from heron.errors import TopologyError, known, nearest

__all__ = ["CONFIG_KEY", "ChildArguments", "ChildSettings", "child_settings"]

CONFIG_KEY = "multilang"

_JS = frozenset({"node", "nodejs", "bun", "deno"})
_NUMBERS = {
    "timeout_s": (0.1, float("inf")),
    "start_timeout_s": (0.1, float("inf")),
    "finish_timeout_s": (0.1, float("inf")),
    "max_pending": (1, 1_000_000),
    "integer_bits": (8, 64),
    "message_bytes": (1024, 2**30),
}


class ChildArguments(TypedDict, total=False):
    """Arguments of `ShellBolt.spec` and `ShellSpout.spec`. A subclass may set them as attributes.

    command: the program and its arguments, as a list or as one string that a shell would split in the same way. No
        shell runs it.
    script: one more argument, whatever characters it has.
    outputs: field names of the default stream, and `Stream` objects.
    resources: the Python package whose folder is the working directory of the child. It travels with the topology.
        Without it, the working directory is `work_folder`, or the folder of the topology's file, where only what it
        imports travels.
    work_folder: the working directory of the child, relative to the folder of the topology's file. Its files have to
        travel with the topology.
    framing: ``json``, or ``msgpack`` for children of pystorm that are started with ``-s msgpack``.
    timeout_s: a child that gives no sign of life for this time is killed; 30.
    start_timeout_s: the time until the child has sent its process id; 300.
    finish_timeout_s: the time in which a bolt's child settles what it has, when all input has ended, and the time from
        then to its exit; a child that has `max_pending` tuples and settles none for this time has forgotten them; 30.
    max_pending: the tuples that the child has and has not settled; a bolt waits above it; 10,000.
    integer_bits: the size of the largest integers that the child can read: 53 for JavaScript, else 64.
    message_bytes: the largest message of the child; 32 MiB.
    """

    command: str | Sequence[str]
    script: str
    outputs: Sequence[str | Stream]
    resources: str
    work_folder: str
    framing: Literal["json", "msgpack"]
    timeout_s: float
    start_timeout_s: float
    finish_timeout_s: float
    max_pending: int
    integer_bits: int
    message_bytes: int


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """A child process: how it is started, and its limits; see `ChildArguments`."""

    command: tuple[str, ...]
    resources: str = ""
    work_folder: str = ""
    framing: str = "json"
    timeout_s: float = 30.0
    start_timeout_s: float = 300.0
    finish_timeout_s: float = 30.0
    max_pending: int = 10_000
    integer_bits: int = 64
    message_bytes: int = 32 * 1024 * 1024

    @classmethod
    def of_config(cls, config: Mapping[str, object]) -> ChildSettings:
        """Return the settings in the configuration of a component.

        Raises:
            TopologyError: when `spec` did not put them there.
        """
        stored = config.get(CONFIG_KEY)
        if not isinstance(stored, Mapping):
            msg = f"the configuration has no {CONFIG_KEY!r}; make the component with ShellBolt.spec or ShellSpout.spec"
            raise TopologyError(msg)
        return _checked(cls(**{**stored, "command": tuple(stored["command"])}), "the configuration")

    def as_config(self) -> dict[str, object]:
        """Return the settings as JSON."""
        return {**asdict(self), "command": list(self.command)}

    @property
    def shown_command(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.command)

    def folder(self) -> Path:
        """Return the working directory of the child, in the process of the task.

        Raises:
            TopologyError: when the package `resources` has no folder here.
        """
        if self.resources:
            return _package_folder(self.resources, "multilang")
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        return ((Path(main).resolve().parent if main else Path.cwd()) / self.work_folder).resolve()

    def environment(self) -> dict[str, str]:
        """Return the environment of the child: the programs of this interpreter are found last."""
        own = str(Path(sys.executable).parent)
        return {**os.environ, "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), own])}


def child_settings(component: type, arguments: ChildArguments, place: str) -> ChildSettings:
    """Return the settings of a component: `arguments`, and what its class sets otherwise.

    Raises:
        TopologyError: when there is no command, an argument is unknown, or has the wrong type or range.
    """
    names = [*(each.name for each in fields(ChildSettings)), "script", "outputs"]
    for name in arguments:
        if name not in names:
            msg = f"{place}: unknown argument {short_text(name)}{nearest(name, names)}; known: {known(names)}"
            raise TopologyError(msg)
    given: dict[str, object] = {
        name: value for name in names if (value := arguments.get(name, getattr(component, name, None))) is not None
    }
    given.pop("outputs", None)
    argv = _words(given.pop("command", None), place)
    script = given.pop("script", None)
    if script is not None:
        if not isinstance(script, str):
            msg = f"{place}: script {short_text(script)} is not a string; give the name of a file in `resources`"
            raise TopologyError(msg)
        argv = (*argv, script)
    if Path(argv[0]).name in _JS:
        given.setdefault("integer_bits", 53)
    return _checked(replace(ChildSettings(argv), **given), place)  # type: ignore[arg-type]  # `_checked` refuses others


def _words(command: object, place: str) -> tuple[str, ...]:
    words: Sequence[object] = ()
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            msg = f"{place}: command {short_text(command)}: {error}; give a list of words"
            raise TopologyError(msg) from error
    elif isinstance(command, list | tuple):
        words = command
    if not words or not all(isinstance(each, str) and each and "\0" not in each for each in words):
        msg = (
            f"{place}: command {short_text(command)} names no program; give command='python3' with script='count.py', "
            "or command=['./count', '--fast']"
        )
        raise TopologyError(msg)
    return tuple(str(each) for each in words)


def _checked(settings: ChildSettings, place: str) -> ChildSettings:
    if settings.framing not in ("json", "msgpack"):
        msg = f"{place}: framing {short_text(settings.framing)} is unknown; known: 'json', 'msgpack'"
        raise TopologyError(msg)
    for name, (low, high) in _NUMBERS.items():
        value = getattr(settings, name)
        whole = isinstance(low, int)
        right = isinstance(value, int) or (isinstance(value, float) and not whole)
        if not right or isinstance(value, bool) or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            msg = f"{place}: {name} {short_text(value)} is not {kind} of {low:g} to {high:g}"
            raise TopologyError(msg)
    resources: object = settings.resources
    if not isinstance(resources, str):
        msg = f"{place}: resources {short_text(resources)} is not a string; give the name of a Python package"
        raise TopologyError(msg)
    work_folder: object = settings.work_folder
    if not isinstance(work_folder, str) or (resources and work_folder):
        msg = f"{place}: work_folder {short_text(work_folder)} is not a string, or `resources` is given too; give one"
        raise TopologyError(msg)
    if resources:
        _package_folder(resources, place)
    return settings


def _package_folder(name: str, place: str) -> Path:
    """Import the package, so that it travels with the topology, and return its folder."""
    try:
        file = importlib.import_module(name).__file__
    except ImportError as error:
        msg = f"{place}: resources: {error}; put the files into a folder {name!r} beside the topology's file"
        raise TopologyError(msg) from error
    if file is None or Path(file).name != "__init__.py":
        msg = f"{place}: resources: {name!r} is not a package; put an empty file __init__.py into its folder"
        raise TopologyError(msg)
    return Path(file).resolve().parent
