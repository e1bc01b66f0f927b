"""Which processes a container has, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import StateError, UsageError
from heron.executor.container_processes import container_processes, output_file, role_spec
from heron.ipc.keys import Speaker, new_keys
from heron.kernel.role_spec import InstanceSpec, MetricsmgrSpec, StmgrSpec, TManagerSpec, read_spec, write_spec
from heron.planner.packing_plan import PackingPlan
from heron.planner.standbys import check_standbys, standby_containers
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec

KEYS = new_keys()
REF = DriverRef("statemgr", "x", "m:C", {"root": "r"})
SPEC = ContainerSpec("wc", "wc-1", 1, 2, "/run", "/log", "file:///p", REF, REF, (REF,), {"heron.heartbeat.s": 1.0})


def test_container_zero_is_the_topology_managers(packing: PackingPlan) -> None:
    """It has no instances, whatever the packing plan says."""
    assert [process.name for process in container_processes(0, packing)] == ["tmanager", "metricsmgr"]


def test_other_containers_have_their_instances_and_the_stream_manager_first(packing: PackingPlan) -> None:
    """Instances register with it: starting it first saves them a wait."""
    names = [process.name for process in container_processes(1, packing)]
    assert names == ["stmgr", "word-1", "count-2", "metricsmgr"]


def test_standbys_are_in_the_first_containers(packing: PackingPlan) -> None:
    """One in each: two in one container would die together. A packing plan with fewer has them in all."""
    assert [standby_containers(packing, count) for count in (0, 1, 2, 3)] == [(), (1,), (1, 2), (1, 2)]
    names = [process.name for process in container_processes(1, packing, standbys=1)]
    assert names == ["stmgr", "word-1", "count-2", "tmanager", "metricsmgr"]
    assert "tmanager" not in [process.name for process in container_processes(2, packing, standbys=1)]
    assert [process.name for process in container_processes(0, packing, standbys=1)] == ["tmanager", "metricsmgr"]


def test_more_standbys_than_containers_are_refused(packing: PackingPlan) -> None:
    """By the command, before anything starts: key, value, limit and remedy."""
    check_standbys("wc", packing, 2)
    with pytest.raises(UsageError) as refused:
        check_standbys("wc", packing, 3)
    assert str(refused.value) == (
        "topology 'wc': topology.tmanager.standbys: 3 standby topology managers need as many containers besides "
        "container 0, and the packing plan has 2 containers; set it to 2 at most, or use more containers"
    )


def test_a_container_that_is_not_planned_is_refused(packing: PackingPlan) -> None:
    """The error lists those that are."""
    with pytest.raises(StateError, match="container 9 is not in packing plan 'plan'; it has '1', '2'"):
        container_processes(9, packing)


def test_each_role_is_told_what_it_needs_and_no_more(packing: PackingPlan, tmp_path: Path) -> None:
    """Instances never see a key or where the state is; specs survive the way through their file, mode 0600."""
    kinds: dict[str, type[object]] = {
        "stmgr": StmgrSpec,
        "word-1": InstanceSpec,
        "count-2": InstanceSpec,
        "metricsmgr": MetricsmgrSpec,
    }
    secrets_of: dict[str, set[str]] = {"stmgr": {"server", "member"}, "metricsmgr": {"member"}, "instance": set()}
    for process in container_processes(1, packing):
        spec = role_spec(process, SPEC, KEYS, (1, 2), 7, tmp_path)
        path = tmp_path / f"{process.name}.json"
        write_spec(path, spec)
        assert read_spec(path, kinds[process.name]) == spec
        assert path.stat().st_mode & 0o777 == 0o600
        assert b"statemgr" not in path.read_bytes() or process.name == "metricsmgr"
        assert secrets_in(path) == secrets_of[process.role]
    tmanager = role_spec(container_processes(0, packing)[0], SPEC, KEYS, (), 7, tmp_path)
    assert tmanager == TManagerSpec("wc", "wc-1", 1, 7, "/run", "/log", REF, KEYS.listening_to(*Speaker), SPEC.settings)


def secrets_in(path: Path) -> set[str]:
    """Whose secrets stand in a file."""
    text = path.read_text()
    pairs = {"server": KEYS.server, "member": KEYS.member, "control": KEYS.control, "reader": KEYS.reader}
    return {name for name, pair in pairs.items() if pair.secret in text}


def test_output_is_named_by_task_for_users_and_by_container_for_the_engine(packing: PackingPlan) -> None:
    """`heron run` follows the former; the latter of two containers must not meet in one file."""
    files = [output_file(process, SPEC).name for process in container_processes(1, packing)]
    assert files == ["stmgr-1.out", "word-1.out", "count-2.out", "metricsmgr-1.out"]


def test_a_spec_file_of_another_kind_or_none_is_an_error(tmp_path: Path) -> None:
    """A role that was started wrongly says so in one line."""
    with pytest.raises(StateError, match="cannot be read"):
        read_spec(tmp_path / "absent.json", StmgrSpec)
    write_spec(tmp_path / "other.json", {"topology": 1})
    with pytest.raises(StateError, match="does not hold a StmgrSpec"):
        read_spec(tmp_path / "other.json", StmgrSpec)
