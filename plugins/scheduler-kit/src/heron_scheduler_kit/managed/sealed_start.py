"""The first process of a container whose launch file is sealed: it fetches the launch file, and becomes the launcher.

It runs as ``python -m heron_scheduler_kit.managed.sealed_start KEYFILE RUN SEALED PLACE``, as long as the
state manager is away. It ends when the job was killed, or when the key does not fit. The opened launch file stays in
memory: agents of Mesos and Thermos show the folder of a container to every reader.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.log import JsonLines
from heron.errors import SchedulerError, StateError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.managed.launch_file import write_launch_file
from heron_scheduler_kit.managed.sealed_cluster import launch_node, open_reference
from heron_scheduler_kit.sealing import SealKey

__all__ = ["fetch_launch_file"]

_LAUNCHER = "heron_scheduler_kit.managed.launcher"
_RETRY_S = 1.0
_log = logging.getLogger(__name__)


def fetch_launch_file(key: SealKey, state: DriverRef, topology_id: str, place: str) -> bytes:
    """Return the launch file of a place, opened.

    Raises:
        SchedulerError: when there is none, or it was sealed otherwise.
        StateError: when the state manager does not answer.
    """
    statemgr = open_statemgr(state)
    try:
        node = statemgr.get(NodeKind.CONTAINER, launch_node(topology_id, place))
    finally:
        statemgr.close()
    if node is None:
        msg = f"place {place} of run {topology_id!r} has no launch file: it was removed, or the topology was killed"
        raise SchedulerError(msg)
    return key.open(node.value.decode("ascii", "replace"), topology_id, place)


def _main(key_file: str, topology_id: str, sealed: str, place: str) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    handler = logging.getLogger().handlers[0]
    handler.setFormatter(JsonLines((), process="launcher"))
    launch = None
    try:
        key = SealKey.read(Path(key_file))
        state = open_reference(key, sealed, topology_id)
        handler.setFormatter(JsonLines(state.secrets, process="launcher"))
        while launch is None:
            try:
                launch = fetch_launch_file(key, state, topology_id, place)
            except StateError as error:
                _log.warning("the launch file waits for the state manager: %s", error)
                threading.Event().wait(_RETRY_S)
    except SchedulerError as error:
        _log.error("the launcher cannot start: %s", error)
        sys.exit(f"the launcher cannot start: {error}")  # the last line of the errors, which clusters show
    path = f"/proc/self/fd/{write_launch_file(launch)}"
    os.execv(sys.executable, [sys.executable, "-P", "-m", _LAUNCHER, path])  # noqa: S606


if __name__ == "__main__":
    _main(*sys.argv[1:])
