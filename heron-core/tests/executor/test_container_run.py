"""Whether a container starts again: not when its topology has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.driver_kit.loading import open_driver
from heron.executor.container_run import is_over
from heron.planner.physical_plan import TopologyState
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import encode_plan
from heron_testing.builders import physical_plan, spout, topology

DEFINITION = topology(spout("spout"))


@pytest.fixture
def spec(tmp_path: Path) -> ContainerSpec:
    states = DriverRef(
        "statemgr", "localfs", "heron_statemgr_localfs.state_manager:LocalFsStateManager", {"root": str(tmp_path)}
    )
    return ContainerSpec("t", "t-1", 1, 2, "", "", "", states, DriverRef("uploader", "none", ""))


@pytest.mark.parametrize("state", TopologyState)
def test_a_topology_is_over_when_its_plan_says_so(spec: ContainerSpec, state: TopologyState) -> None:
    statemgr = open_driver(spec.statemgr, StateManager)
    assert not is_over(statemgr, spec), "there is no plan yet"
    statemgr.set(NodeKind.PHYSICAL_PLAN, "t", encode_plan(physical_plan(DEFINITION, state=state)))
    ends = {TopologyState.FINISHED, TopologyState.FAILED, TopologyState.KILLED}
    assert is_over(statemgr, spec) is (state in ends)


@pytest.mark.parametrize("of_another_run", [True, False])
def test_only_a_plan_of_this_run_counts(spec: ContainerSpec, of_another_run: bool) -> None:
    statemgr = open_driver(spec.statemgr, StateManager)
    other = physical_plan(topology(spout("spout"), name="other"), state=TopologyState.FINISHED)
    statemgr.set(NodeKind.PHYSICAL_PLAN, "t", encode_plan(other) if of_another_run else b"damaged")
    assert not is_over(statemgr, spec)
