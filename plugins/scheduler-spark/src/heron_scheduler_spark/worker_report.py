"""What a worker has to have before anything is started there, asked by a task of its own or by a container's."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator

from heron.errors import SchedulerError
from heron.kernel.core_version import core_version

__all__ = ["check_core", "report"]


def report(wanted: Iterable[str]) -> Iterator[str]:
    """Called by Spark with the version of heron-core that the command has; gives what is there, in a few words."""
    for version in wanted:
        check_core(version)
        yield f"Python {platform.python_version()} on {os.uname().nodename}"


def check_core(wanted: str) -> None:
    """Raises SchedulerError when this machine has another heron-core than the command."""
    if core_version() != wanted:
        msg = (
            f"{os.uname().nodename} has heron-core {core_version()}, and the command {wanted}; install the same "
            "version on the workers, or ship it with scheduler.archives"
        )
        raise SchedulerError(msg)
