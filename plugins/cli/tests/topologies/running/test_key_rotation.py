"""The two steps of a rotation of keys, as a command makes them: what each waits for, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from heron.errors import StateConflictError, UnreachableError, UsageError
from heron.ipc.documents.status import KeysStatus, TaskStatus, TopologyStatus
from heron.ipc.keys import KeyRing, new_keys
from heron.spi.statemgr import NodeKind, Versioned
from heron.state_nodes.tmanager_location import TManagerLocation
from heron.state_nodes.topology_keys import decode_key_ring, encode_keys
from heron_cli.topologies.running.key_rotation import HeldKeys, held_keys, rotate_keys
from heron_cli.topologies.running.remote_topology import RemoteTopology

LATE = ("container 2 does not have the new keys",)


class Rotating:
    """A topology of two containers that follows its node at once, except a container that is away."""

    name = "words"
    timeout_s = 0.01

    def __init__(self) -> None:
        self.ring = KeyRing.of(new_keys())
        self.version = 1
        self.away: KeyRing | None = None
        self.leader: KeyRing | None = None
        self.state = "running"
        self.earlier = False
        self.on_write: Callable[[], object] = lambda: None

    def keys(self) -> Versioned:
        """As `RemoteTopology.keys`."""
        return Versioned(encode_keys(self.ring), self.version)

    @property
    def statemgr(self) -> Rotating:
        """This topology is its own state manager."""
        return self

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int) -> None:
        """As `StateManager.set`."""
        assert (kind, topology) == (NodeKind.KEYS, self.name)
        if expected != self.version:
            raise StateConflictError(self.name)
        self.ring, self.version = decode_key_ring(value, self.name), self.version + 1
        self.on_write()

    def located(self) -> TManagerLocation:
        """As `RemoteTopology.located`."""
        server_key = "" if self.earlier else (self.leader or self.ring).server.public
        return TManagerLocation("tcp://", "words-1", 1, "here", server_key=server_key)

    def status(self, *, control: bool = False) -> TopologyStatus:
        """As `RemoteTopology.status`."""
        tasks = tuple(TaskStatus(each, "a", each, "running", 1) for each in (1, 2))
        groups = [(self.ring, (1,)), (self.away or self.ring, (2,))]
        keys = tuple(
            KeysStatus(tuple(each.server.public for each in ring.sets()), True, containers)
            for ring, containers in groups
        )
        return TopologyStatus(self.name, "words-1", self.state, 1.0, tasks=tasks, keys=keys)


def rotate(
    topology: Rotating, after_s: float | None = None, on_step: Callable[[str], object] = lambda _: None
) -> HeldKeys:
    """Rotate the keys of a topology."""
    return rotate_keys(cast("RemoteTopology", topology), after_s=after_s, on_step=on_step)


def held(topology: Rotating) -> HeldKeys:
    """What `heron keys` shows."""
    return held_keys(cast("RemoteTopology", topology))


def test_the_old_keys_leave_when_every_container_has_confirmed() -> None:
    """All four pairs change; a second rotation begins from there."""
    topology = Rotating()
    first = topology.ring
    steps: list[int] = []
    topology.on_write = lambda: steps.append(len(topology.ring.sets()))
    for _ in range(2):
        before = topology.ring
        assert not held(topology).rotating
        assert rotate(topology) == HeldKeys("words", (topology.ring.server.public,))
        for pair in ("server", "member", "control", "reader"):
            assert getattr(topology.ring, pair) != getattr(before, pair)
        assert topology.ring.former == before.server.public
    assert steps == [2, 1, 2, 1]
    assert topology.ring.server != first.server


def test_a_container_that_is_away_holds_the_rotation_and_the_next_command_completes_it() -> None:
    """Both sets stay valid; the next command makes no third set."""
    topology = Rotating()
    topology.away = topology.ring
    with pytest.raises(UnreachableError, match=r"still rotate after 0\.01 s, and data flows on: container 2 does not"):
        rotate(topology)
    both = topology.ring
    assert held(topology) == HeldKeys("words", tuple(each.server.public for each in both.sets()), LATE)
    topology.away = None
    rotate(topology)
    assert topology.ring == both.completed()


def test_after_a_time_the_rotation_goes_on_without_a_container_and_names_it() -> None:
    """An operator who must end the old keys now does not wait for a lost host; a script must not take it for done."""
    topology = Rotating()
    topology.away = topology.ring
    steps: list[str] = []
    with pytest.raises(UnreachableError, match=r"are removed, but 0\.01 s later not everywhere: container 2 does not"):
        rotate(topology, 0.0, steps.append)
    assert steps[1:] == ["container 2 does not have the new keys; the old ones are removed"]
    assert topology.ring.next is None
    version = topology.version
    with pytest.raises(UnreachableError, match="not everywhere: container 2 does not"):
        rotate(topology, 0.0)
    assert topology.version == version, "its executor would refuse a third set"
    topology.away = None
    steps.clear()
    assert not rotate(topology, 0.0, steps.append).waits_for
    assert steps[1:] == ["every container uses the new keys; the old ones are removed"]


def test_the_command_waits_for_the_topology_manager_with_the_new_keys() -> None:
    """Until it has started again, it accepts the old keys."""
    topology = Rotating()
    topology.leader = topology.ring
    for _ in range(2):
        with pytest.raises(UnreachableError, match="the topology manager has the old keys, and starts again"):
            rotate(topology)
        assert topology.version == 3, "the second command completes this rotation first"
    topology.leader = None
    assert held(topology).waits_for == ()


def test_what_cannot_rotate_is_refused_and_nothing_changes() -> None:
    """A topology of an earlier version would never confirm; a second command must not overwrite the keys of a first."""
    topology = Rotating()
    topology.earlier = True
    with pytest.raises(UsageError, match="a version of heron-core whose keys do not rotate"):
        rotate(topology)
    assert topology.version == 1
    topology = Rotating()
    topology.keys = lambda: Versioned(encode_keys(topology.ring), 7)  # type: ignore[method-assign]
    with pytest.raises(StateConflictError):
        rotate(topology)
    assert topology.version == 1
