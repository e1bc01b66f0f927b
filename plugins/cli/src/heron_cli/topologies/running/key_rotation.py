"""Gives a running topology new keys in two steps, and says which containers a step waits for; decision 059.

The first step writes the new keys beside the old ones, and the second one removes the old ones. The node has the step,
so another call goes on where an interrupted one has stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from heron.clock import monotonic_s
from heron.errors import UnreachableError, UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.ipc.keys import KeyRing, new_keys
from heron.spi.statemgr import NodeKind
from heron.state_nodes.topology_keys import decode_key_ring, encode_keys
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.restart import containers_of
from heron_cli.topologies.running.topology_end import check_not_ended

__all__ = ["HeldKeys", "held_keys", "rotate_keys"]

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """The sets of keys of a topology, oldest first, by the server's public keys, and what their rotation waits for."""

    topology: str
    server_keys: tuple[str, ...]
    waits_for: tuple[str, ...] = ()

    @property
    def rotating(self) -> bool:
        """Whether a rotation is under way."""
        return len(self.server_keys) > 1 or bool(self.waits_for)


def held_keys(topology: RemoteTopology) -> HeldKeys:
    """Return the keys of a topology."""
    ring, _ = _ring(topology)
    return _held(topology, ring)


def rotate_keys(
    topology: RemoteTopology, *, after_s: float | None, on_step: Callable[[str], object] = lambda _: None
) -> HeldKeys:
    """Give the topology new keys, or complete the rotation that is under way; return when the old ones are refused.

    The time limit of `topology` is that of each step. After `after_s` seconds the first step goes on without the
    containers that have not confirmed: their connections break.

    Raises:
        UsageError: when the topology has ended, or its version of heron-core does not rotate keys; nothing was changed.
        StateConflictError: when another command changes the keys now.
        UnreachableError: when a step is not completed in time; the message names what is missing. After the first
            step both sets are accepted, and data flows on. After the second one the old set is removed.
    """
    check_not_ended(topology.status(control=True))
    if (leader := topology.located()) and not leader.server_key:
        msg = f"topology {topology.name!r} runs with a version of heron-core whose keys do not rotate; submit it again"
        raise UsageError(msg)
    ring, version = _ring(topology)
    if not _held(topology, ring).rotating:
        on_step("new keys are written beside the old ones")
        _write(topology, ring.beginning(new_keys()), version)
        ring, version = _ring(topology)
    if ring.next is not None:
        missing = "; ".join(_wait(topology, ring, after_s).waits_for)
        on_step(f"{missing or 'every container uses the new keys'}; the old ones are removed")
        _write(topology, ring.completed(), version)
        ring, version = _ring(topology)
    return _wait(topology, ring, None)


def _ring(topology: RemoteTopology) -> tuple[KeyRing, int]:
    node = topology.keys()
    return decode_key_ring(node.value, topology.name), node.version


def _write(topology: RemoteTopology, ring: KeyRing, expected: int) -> None:
    topology.statemgr.set(NodeKind.KEYS, topology.name, encode_keys(ring), expected=expected)


def _held(topology: RemoteTopology, ring: KeyRing) -> HeldKeys:
    status = topology.status()
    check_not_ended(status)
    server_keys = tuple(keys.server.public for keys in ring.sets())
    waits_for = _lacking(ring, status) if ring.next is not None or ring.former else []
    if ring.former and ((leader := topology.located()) is None or leader.server_key != ring.server.public):
        waits_for.append("the topology manager has the old keys, and starts again")
    return HeldKeys(topology.name, server_keys, tuple(waits_for))


def _lacking(ring: KeyRing, status: TopologyStatus) -> list[str]:
    reports = {container_id: each for each in status.keys for container_id in each.containers}
    newest = ring.sets()[-1].server.public
    found = []
    for container_id in containers_of(status):
        report = reports.get(container_id)
        if container_id == 0:
            continue
        if report is None:
            found.append(f"container {container_id} has not reported yet")
        elif newest not in report.server_keys:
            found.append(f"container {container_id} does not have the new keys")
        elif ring.next is None and len(report.server_keys) > 1:
            found.append(f"container {container_id} still accepts the old keys")
        elif not report.moved:
            found.append(f"container {container_id} still has connections with the old keys")
    return found


def _wait(topology: RemoteTopology, ring: KeyRing, after_s: float | None) -> HeldKeys:
    began_s = monotonic_s()
    pause = threading.Event()
    while (held := _held(topology, ring)).waits_for:
        waited_s = monotonic_s() - began_s
        if after_s is not None and waited_s >= after_s:
            return held
        if waited_s >= topology.timeout_s:
            raise UnreachableError(_late(topology, ring, held))
        pause.wait(_POLL_S)
    return held


def _late(topology: RemoteTopology, ring: KeyRing, held: HeldKeys) -> str:
    name, timeout_s, why = topology.name, topology.timeout_s, "; ".join(held.waits_for)
    if ring.next is None:
        return (
            f"the old keys of topology {name!r} are removed, but {timeout_s:g} s later not everywhere: {why}; "
            f"connections with the old keys are broken until then; `heron keys {name}` shows what is missing"
        )
    return (
        f"the keys of topology {name!r} still rotate after {timeout_s:g} s, and data flows on: {why}; "
        f"`heron keys rotate {name}` goes on, and with --after without these containers"
    )
