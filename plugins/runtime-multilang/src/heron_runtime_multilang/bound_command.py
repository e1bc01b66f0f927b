"""A command whose process the kernel ends together with the process that starts it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence

from heron.driver_kit import parent_process
from heron_runtime_multilang import child_start

__all__ = ["bound_command", "bound_environment"]


def bound_command(command: Sequence[str]) -> list[str]:
    """Return the words that start `command`; give their process the environment of `bound_environment`."""
    return [sys.executable, "-I", "-S", str(child_start.__file__), str(parent_process.__file__), *command]


def bound_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with what a bound command needs: this process as its parent, and how it dies."""
    parent = {parent_process.PARENT_PID: str(os.getpid()), parent_process.DEATH_SIGNAL: signal.SIGKILL.name}
    return {**environment, **parent}
