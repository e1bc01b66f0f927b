"""Starts the processes of a run: the scheduler its executors, an executor its children.

What ties a child to its parent stands in `heron.driver_kit.process`, which the child itself calls: so no code of ours
runs between fork and exec, and Python can use its fast way to start a process.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from heron.driver_kit.process import DEATH_SIGNAL, PARENT_PID

__all__ = ["spawn"]


def spawn(
    argv: Sequence[str],
    *,
    stdout: IO[bytes] | int | None = None,
    death_signal: signal.Signals | None = signal.SIGKILL,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    detached: bool = False,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts a program in a process group of its own, with stdin closed and stderr joined to stdout.

    Call it from the main thread. A program that calls `bind_to_parent` gets `death_signal` when this process ends;
    with None it survives. `env` is added to this process's environment. `detached` makes a session of its own. The
    child inherits the descriptors `pass_fds` and no others.
    """
    environment = {**os.environ, **(env or {})}
    if death_signal is not None:
        environment[PARENT_PID] = str(os.getpid())
        environment[DEATH_SIGNAL] = death_signal.name
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=None if stdout is None else subprocess.STDOUT,
        env=environment,
        cwd=cwd,
        start_new_session=detached,
        process_group=None if detached else 0,
        pass_fds=pass_fds,
    )
