"""The processes of a container, and their specs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import StateError, UsageError
from heron.executor.container_processes import container_processes, output_file, role_spec
from heron.ipc.keys import ClientKind, KeyRing, new_keys
from heron.kernel.role_spec import (
    InstanceSpec,
    MetricsmgrSpec,
    ServiceProcessSpec,
    StmgrSpec,
    TManagerSpec,
    read_spec,
    write_spec,
)
from heron.planner.packing_plan import PackingPlan, check_standbys, standby_containers
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, ServiceSpec

KEYS = KeyRing.of(new_keys())
REF = DriverRef("statemgr", "x", "m:C", {"root": "r"})
SPEC = ContainerSpec("wc", "wc-1", 1, 2, "/run", "/log", "file:///p", REF, REF, (REF,), {"heron.heartbeat.s": 1.0})


def test_container_zero_runs_the_topology_manager(packing: PackingPlan) -> None:
    """It has no instances, whatever the packing plan says."""
    assert [process.name for process in container_processes(0, packing)] == ["tmanager", "metricsmgr"]


def test_the_stream_manager_of_a_container_starts_before_its_instances(packing: PackingPlan) -> None:
    """Instances register with the stream manager, and need not wait for it then."""
    names = [process.name for process in container_processes(1, packing)]
    assert names == ["stmgr", "word-1", "count-2", "metricsmgr"]


def test_standbys_are_in_the_first_containers(packing: PackingPlan) -> None:
    """One in each container, because two in one container would die together. A small plan has them in all."""
    assert [standby_containers(packing, count) for count in (0, 1, 2, 3)] == [(), (1,), (1, 2), (1, 2)]
    names = [process.name for process in container_processes(1, packing, standbys=1)]
    assert names == ["stmgr", "word-1", "count-2", "tmanager", "metricsmgr"]
    assert "tmanager" not in [process.name for process in container_processes(2, packing, standbys=1)]
    assert [process.name for process in container_processes(0, packing, standbys=1)] == ["tmanager", "metricsmgr"]


def test_the_first_container_that_remains_gets_the_standby_of_a_removed_one(packing: PackingPlan) -> None:
    """It starts with the next start of that container; running executors do not change."""
    remaining = PackingPlan("later", packing.containers[1:])
    assert "tmanager" in [process.name for process in container_processes(2, remaining, standbys=1)]


def test_more_standbys_than_containers_are_refused(packing: PackingPlan) -> None:
    """The command refuses before any process starts, with key, value, limit and remedy."""
    check_standbys("wc", packing, 2)
    with pytest.raises(UsageError) as refused:
        check_standbys("wc", packing, 3)
    assert str(refused.value) == (
        "topology 'wc': topology.tmanager.standbys: 3 standby topology managers need as many containers besides "
        "container 0, and the packing plan has 2 containers; set it to 2 at most, or use more containers"
    )


def test_a_container_outside_the_packing_plan_is_refused(packing: PackingPlan) -> None:
    """The error lists the containers of the plan."""
    with pytest.raises(StateError, match="container 9 is not in packing plan 'plan'; it has '1', '2'"):
        container_processes(9, packing)


def test_each_role_receives_only_what_it_needs(packing: PackingPlan, tmp_path: Path) -> None:
    """Instances receive no key and no access to the state manager. Spec files have mode 0600 and decode unchanged."""
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
    assert tmanager == TManagerSpec(
        "wc", "wc-1", 1, 7, "/run", "/log", REF, KEYS.listening_to(*ClientKind), SPEC.settings
    )


def test_the_checkpoint_store_reaches_instances_and_topology_managers(packing: PackingPlan, tmp_path: Path) -> None:
    """They save and restore. The other roles have no use for it, and it may contain secrets."""
    store = DriverRef("checkpoint", "x", "m:C", {"root": "checkpoints"})
    container = replace(SPEC, checkpoint=store)
    for container_id in (0, 1):
        for process in container_processes(container_id, packing):
            path = tmp_path / f"{process.name}.json"
            write_spec(path, role_spec(process, container, KEYS, (1, 2), 7, tmp_path))
            assert (b"checkpoints" in path.read_bytes()) == (process.role in {"instance", "tmanager"})
            spec = role_spec(process, SPEC, KEYS, (1, 2), 7, tmp_path)
            if isinstance(spec, InstanceSpec | TManagerSpec):
                assert read_spec(path, type(spec)) == replace(spec, checkpoint=store)


@pytest.mark.parametrize("control", [False, True])
def test_a_service_runs_in_container_zero_with_one_key(packing: PackingPlan, tmp_path: Path, control: bool) -> None:
    """The read-only key, unless it may change the topology; and the module of another distribution."""
    service = ServiceSpec("health", "other.manager", control, (REF,), {"mode": "act"})
    assert not any(each.service for each in container_processes(1, packing, services=(service,)))
    process = container_processes(0, packing, services=(service,))[-1]
    assert (process.name, process.module) == ("health", "other.manager")
    assert output_file(process, SPEC).name == "health-1.out"
    path = tmp_path / "health.json"
    write_spec(path, role_spec(process, SPEC, KEYS, (), 7, tmp_path))
    spec = read_spec(path, ServiceProcessSpec)
    assert (spec.control, spec.drivers, spec.options) == (control, (REF,), {"mode": "act"})
    assert spec.driver("statemgr") == REF
    assert spec.driver("packing") is None
    assert secrets_in(path) == {"control" if control else "reader"}


def secrets_in(path: Path) -> set[str]:
    """The owners of the secret keys in a file."""
    text = path.read_text()
    pairs = {"server": KEYS.server, "member": KEYS.member, "control": KEYS.control, "reader": KEYS.reader}
    return {name for name, pair in pairs.items() if pair.secret in text}


def test_output_is_named_by_task_for_users_and_by_container_for_the_engine(packing: PackingPlan) -> None:
    """`heron run` follows the files of tasks. Two containers must not write to the same file."""
    files = [output_file(process, SPEC).name for process in container_processes(1, packing)]
    assert files == ["stmgr-1.out", "word-1.out", "count-2.out", "metricsmgr-1.out"]


def test_a_missing_spec_file_and_one_of_another_kind_are_errors(tmp_path: Path) -> None:
    """The error of a role that was started wrongly is one line."""
    with pytest.raises(StateError, match="cannot be read"):
        read_spec(tmp_path / "absent.json", StmgrSpec)
    write_spec(tmp_path / "other.json", {"topology": 1})
    with pytest.raises(StateError, match="is not a StmgrSpec"):
        read_spec(tmp_path / "other.json", StmgrSpec)
