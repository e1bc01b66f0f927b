"""Where the topology runs, written into its state for those who ask from another machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from heron.driver_kit.large_values import open_statemgr
from heron.errors import HeronError, StateError
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager

__all__ = ["note_place", "publish"]

_log = logging.getLogger(__name__)


def publish(spec: ContainerSpec, handle: str, links: Mapping[str, str]) -> None:
    """As `note_place`; that it cannot be written is no reason not to run."""
    try:
        statemgr = open_statemgr(spec.statemgr)
        try:
            note_place(statemgr, spec, handle, links)
        finally:
            statemgr.close()
    except (HeronError, ValueError) as error:
        _log.warning("where the topology runs is not written: %s", error)


def note_place(statemgr: StateManager, spec: ContainerSpec, handle: str, links: Mapping[str, str]) -> None:
    """Adds what Spark calls the job, and its pages, to the record of this run, and leaves the rest of it as it is.

    Raises:
        StateError: when there is no such record, or it was changed or removed meanwhile: by who kills the topology.
        ValueError: when it is damaged.
    """
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, spec.topology)
    record = json.loads(node.value) if node else None
    if node is None or not isinstance(record, dict) or record.get("topology_id") != spec.topology_id:
        msg = f"the state has no record of {spec.topology_id!r}"
        raise StateError(msg)
    record |= {"handle": handle, "links": dict(links)}
    statemgr.set(NodeKind.SCHEDULER_LOCATION, spec.topology, json.dumps(record).encode(), expected=node.version)
