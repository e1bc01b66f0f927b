"""A topology manager that leads looks at its hold, because nothing else tells it that it was deposed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import open_driver
from heron.errors import StateConflictError
from heron.ipc.keys import ClientKind, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.role_spec import TManagerSpec
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import encode_plan
from heron.tmanager.main import lead


class NoHooks:
    """As `Hooks`, without observers."""

    def notify(self, hook: str, **facts: object) -> None:
        """Nobody listens."""


def test_a_deposed_leader_that_has_nothing_to_write_ends(
    tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan
) -> None:
    """A write of a deposed leader fails, but an idle one writes nothing."""
    place = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
    ref = DriverRef("statemgr", "localfs", place, {"root": str(tmp_path)})
    run_dir = tempfile.mkdtemp(prefix="hw")  # tmp_path is too long for a socket
    state, reactor, sockets = open_driver(ref, StateManager), Reactor(), SocketContext(max_frame_bytes=-1)
    state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
    state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
    keys = new_keys().listening_to(*ClientKind)
    spec = TManagerSpec("wc", "wc-1", 0, 1, run_dir, run_dir, ref, keys, {"heron.heartbeat.s": 0.01})
    try:
        lease = lead(spec, state, reactor, sockets, NoHooks(), lambda: False)
        state.delete(NodeKind.TMANAGER_LOCATION, "wc")  # as a store does at the end of a lease
        reactor.after(10.0, reactor.stop)
        with pytest.raises(StateConflictError, match="another topology manager may lead 'wc' now"):
            reactor.run()
        lease.release()
    finally:
        sockets.close()
        state.close()
        shutil.rmtree(run_dir)
