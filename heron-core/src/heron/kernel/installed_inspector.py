"""Finds the installed task inspector. A task imports this module at its first question, never before.

Processes of a run load their drivers by the entry that a command has chosen. An inspector is not chosen: the process of
the task looks for it itself, so a task that runs already finds an inspector that is installed later.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import socket
import sys

from heron.driver_kit.loading import open_driver
from heron.errors import MissingDriverError, PluginError
from heron.spi.driver import DriverRef
from heron.spi.inspector import TaskInspector

__all__ = ["open_inspector"]

_FAMILY = "task"
_SHIPPED = "heron-task-inspector"


def open_inspector() -> TaskInspector:
    """Open the inspector that is installed in the Python of this process.

    Raises:
        MissingDriverError: when none is installed; has the command that installs one.
        PluginError: when several are installed, or the one that is does not load.
    """
    importlib.invalidate_caches()  # it may have been installed since the last question
    found = list(importlib.metadata.entry_points(group=f"heron.{_FAMILY}"))
    place = f"{sys.executable} on {socket.gethostname()}"
    if not found:
        msg = (
            f"no task inspector is installed in the Python of this task ({place}); to add one there: "
            f"`pip install {_SHIPPED}`, then ask again: the task need not be restarted"
        )
        raise MissingDriverError(msg, _SHIPPED)
    if len(found) > 1:
        names = " and ".join(sorted(each.dist.name if each.dist else each.value for each in found))
        msg = f"{names} are task inspectors, and a task has one; uninstall all but one of them ({place})"
        raise PluginError(msg)
    return open_driver(DriverRef(_FAMILY, found[0].name, found[0].value), TaskInspector)
