"""Where the topology runs, written for others into its state: Spark's id of the application, its page, the host."""

from __future__ import annotations

import json
import logging
import os

from heron.errors import HeronError
from heron.kernel.large_values import open_statemgr
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind

__all__ = ["publish"]

_log = logging.getLogger(__name__)


def publish(spec: ContainerSpec, application: str, page: str) -> None:
    """Writes the node; that nobody can read there is no reason not to run."""
    where = {
        "scheduler": "spark",
        "topology_id": spec.topology_id,
        "application": application,
        "page": page,
        "host": os.uname().nodename,
    }
    try:
        statemgr = open_statemgr(spec.statemgr)
        try:
            statemgr.set(NodeKind.SCHEDULER_LOCATION, spec.topology, json.dumps(where).encode())
        finally:
            statemgr.close()
    except HeronError as error:
        _log.warning("where the topology runs is not written: %s", error)
