"""Becomes a child's program, after it has asked the kernel to end it together with its task.

The task runs this file with `-I -S`: no module of an installation is imported, so it starts fast. The first
argument is the file of `heron.driver_kit.parent_process`, the others are the command.
"""

from __future__ import annotations

import os
import runpy
import sys

_NOT_FOUND = 127  # as shells have it


def _main() -> None:
    runpy.run_path(sys.argv[1])["bind_to_parent"]()
    command = sys.argv[2:]
    try:
        os.execvp(command[0], command)  # noqa: S606  # the command is the author's
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        os._exit(_NOT_FOUND)


if __name__ == "__main__":
    _main()
