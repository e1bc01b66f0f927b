"""``python -P -m heron_testing.forked_command FILE``: becomes `heron` as the `CommandRequest` in the file asks.

Only a process that `heron_testing.command_template` has forked runs this, so the command is imported already.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heron.driver_kit.command_line import show_command_line
from heron_cli.main import main

__all__ = ["CommandRequest"]


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command that a forked process becomes.

    Attributes:
        words: its command line; the first word is the program.
        environ: all its variables.
        cwd: its folder.
        stdout: the file of its standard output, which exists.
        stderr: the same, of its standard error.
    """

    words: tuple[str, ...]
    environ: dict[str, str]
    cwd: str
    stdout: str
    stderr: str


def _become(request: CommandRequest) -> None:
    for path, target in ((request.stdout, 1), (request.stderr, 2)):
        file = os.open(path, os.O_WRONLY)
        os.dup2(file, target)
        os.close(file)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.environ)
    sys.argv[:] = request.words
    sys.orig_argv[:] = [sys.executable, *request.words]
    show_command_line(sys.orig_argv, request.environ)
    main()


if __name__ == "__main__":
    asked = Path(sys.argv[1])
    wanted = msgspec.json.decode(asked.read_bytes(), type=CommandRequest)
    asked.unlink()  # the environment may have passwords, and tests look for them in all files
    _become(wanted)
