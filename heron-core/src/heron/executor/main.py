"""Entry point of an executor: ``python -m heron.executor.main SPECFILE``.

The fork server is forked before anything else. What only the executor needs is imported afterwards, so the processes of
the container have the modules that a new interpreter would have, and those of `subprocess`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import cast

from heron.driver_kit.loading import load_object
from heron.driver_kit.process_starter import ProcessStarter

__all__ = ["SHARED"]

SHARED = (
    "heron.ipc.locator",
    "heron.ipc.reactor",
    "heron.ipc.socket",
    "heron.kernel.role_process",
    "heron.kernel.role_spec",
    "heron.kernel.settings",
    "heron.kernel.telemetry",
    "heron.planner.physical_plan",
)
"""What the executor needs, and each role of its container too."""

_INSTANCE = "heron.instance.main"  # a container has many of this role

if __name__ == "__main__":
    for module in SHARED:
        importlib.import_module(module)
    starter = ProcessStarter(imports={_INSTANCE: (_INSTANCE,)})
    starter.fork(sys.argv[-1])
    cast("Callable[[ProcessStarter], None]", load_object("heron.executor.container_run:run_container"))(starter)
