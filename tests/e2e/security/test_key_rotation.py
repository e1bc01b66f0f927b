"""The keys of a running topology change: no tuple is lost or sent again, data flows, and the old keys are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from secret_places import keys_of

from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.errors import AccessError, UnreachableError
from heron.ipc.keys import ClientKind, TopologyKeys
from heron.ipc.query import TManagerClient
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import decode_physical_plan
from heron.state_nodes.tmanager_location import decode_tmanager_location

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

pytestmark = pytest.mark.matrix

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_NAME = "flooding"


def nodes(sandbox: Sandbox) -> tuple[TopologyKeys, list[str]]:
    """The present keys, and the endpoints of the topology manager and of every stream manager."""
    root: dict[str, object] = {"root": str(sandbox.home / ".heron" / "state")}
    state = open_driver(DriverRef("statemgr", "localfs", _DRIVER, root), StateManager)
    try:
        location, plan = state.get(NodeKind.TMANAGER_LOCATION, _NAME), state.get(NodeKind.PHYSICAL_PLAN, _NAME)
        assert location is not None
        assert plan is not None
        peers = [each.endpoint for each in decode_physical_plan(plan.value, "plan").stmgrs]
        return keys_of(state, _NAME), [decode_tmanager_location(location.value, _NAME).endpoint, *peers]
    finally:
        state.close()


def flows(run: HeronRun, sandbox: Sandbox) -> None:
    """Wait until more numbers are counted."""
    run.grows(lambda: sandbox.executed(_NAME, "tally"), "numbers", 10_000)


def refused(endpoint: str, keys: TopologyKeys, kind: ClientKind) -> bool:
    """Whether a connection with these keys is refused."""
    try:
        with TManagerClient(endpoint, keys.connecting_as(kind)) as client:
            client.status(5.0)
    except (AccessError, UnreachableError):
        return True
    return False


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
def test_keys_rotate_under_full_load_without_a_lost_tuple_or_a_pause(sandbox: Sandbox, mode: str) -> None:
    """Without acks nothing is sent again, so a single lost frame would be missing in the counts."""
    run = sandbox.start("flooding.py", args=("--mode", mode))
    sandbox.wait_for_state(run, _NAME)
    flows(run, sandbox)
    old, endpoints = nodes(sandbox)
    instances = {process.pid for process in (*run.processes("instance"), *run.processes("stmgr"))}
    assert json.loads(sandbox.output_of("keys", _NAME, "--json"))["server_keys"] == [old.server.public]
    began_s = int(monotonic_s())
    for _ in range(2):
        sandbox.output_of("keys", "rotate", _NAME)
        flows(run, sandbox)
    shown = json.loads(sandbox.output_of("keys", _NAME, "--json"))
    new, present = nodes(sandbox)
    assert shown == {"topology": _NAME, "rotating": False, "server_keys": [new.server.public], "waits_for": []}
    assert new.server != old.server
    assert not set(endpoints) & set(present)
    assert not refused(present[0], new, ClientKind.READER)
    for endpoint in (*endpoints, *present):
        for kind in ClientKind:
            assert refused(endpoint, old, kind)
    assert {process.pid for process in (*run.processes("instance"), *run.processes("stmgr"))} == instances
    (run.out / "stop").touch()
    report = run.finished()
    check_counts(run)
    seconds = {second for _, seconds in results(run, "tally") for second in seconds}
    assert set(range(began_s, max(seconds))) <= seconds, "a second without data"
    assert report.components["tally"].executed == report.components["numbers"].emitted


def check_counts(run: HeronRun) -> None:
    """Every number was counted once, and none has failed."""
    emitted, failed = zip(*(rows[0] for rows in results(run, "numbers")), strict=True)
    tallies = results(run, "tally")
    counts = [tally for tallies_of_task, _ in tallies for tally in tallies_of_task]
    assert sum(count for _, count, _ in counts) == sum(emitted)
    assert sum(total for _, _, total in counts) == sum(number * (number - 1) // 2 for number in emitted)
    assert sum(failed) == 0


def results(run: HeronRun, component: str) -> list[list[Any]]:
    """What the tasks of a component have written."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(run.out.glob(f"{component}-*.json"))]
