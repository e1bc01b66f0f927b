"""The job that a cluster stores: requests from the packing plan, and changes of the set of containers."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api.api_constants import TOPOLOGY_TMANAGER_STANDBYS
from heron.errors import SchedulerError
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import NO_RESOURCE, Resource
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, ContainerStatus, Job
from heron_scheduler_kit.managed.cluster import JobChange, Observation
from heron_scheduler_kit.managed.container_life import UNSEEN_END
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord
from heron_scheduler_kit.managed.container_state import container_status
from heron_scheduler_kit.managed.launch_file import encode_launch_file, read_launch_file, write_launch_file
from heron_scheduler_kit.managed.managed_job import ManagedJob, decode_job, encode_job
from heron_scheduler_kit.managed.managed_options import ManagedOptions

OPTIONS = ManagedOptions(executor_cpu=0.1, executor_memory_mb=128, manager_cpu=0.5, manager_memory_mb=384)
STATE = DriverRef("statemgr", "zookeeper", "m:C", {"password": "s3cret"}, secrets=("s3cret",))


def _spec(container_id: int, needs: Resource = NO_RESOURCE) -> ContainerSpec:
    return ContainerSpec("t", "t-1", container_id, 1, "/run/t", "/log/t", "file:x", STATE, STATE, required=needs)


def _job(*specs: ContainerSpec) -> ManagedJob:
    job = Job("t", "t-1", specs, owner="ann", role="ads", env="prod")
    return ManagedJob.of(job, OPTIONS, lambda _, container_id: f"place-{container_id}")


def test_a_request_is_the_plan_and_the_share_of_the_executor() -> None:
    """A cluster that enforces the request of the plan alone would kill containers that use what they were given."""
    job = _job(_spec(0), _spec(1, Resource(2.0, 3 * 2**30 + 1, 5 * 2**30)))
    manager, data = job.containers
    assert (manager.cpu, manager.memory_mb, manager.disk_mb) == (0.6, 512, 0)
    assert (data.cpu, data.memory_mb, data.disk_mb) == (2.1, 3072 + 1 + 128, 5120)


def test_the_first_containers_have_the_standbys() -> None:
    """A cluster that can keeps them off the machine of container 0."""
    settings = EngineSettings(standbys=2).to_keys()
    job = _job(*(replace(_spec(each), settings=settings) for each in (3, 0, 1, 7)))
    assert job.standby_places == ("place-1", "place-3")
    assert decode_job(encode_job(job.without([1])), "here", "t").standby_places == ("place-3", "place-7")
    assert _job(_spec(0), _spec(1)).standby_places == ()


def test_a_stored_job_comes_back_and_has_no_secret() -> None:
    """Every user of the cluster may read it."""
    job = _job(_spec(0), _spec(1))
    text = encode_job(job)
    assert decode_job(text, "here", "t") == job
    assert "s3cret" not in text
    with pytest.raises(SchedulerError, match="service/x: is not a job"):
        decode_job('{"containers": 3}', "service/x", "t")
    with pytest.raises(SchedulerError, match="here belongs to topology 't'; give 'u' another name"):
        decode_job(text, "here", "u")


def test_places_of_topology_managers_are_known() -> None:
    """A cluster keeps them apart; without standbys there is nothing to keep apart."""
    assert _job(_spec(0), _spec(1)).managers == ()
    specs = [replace(_spec(each), settings={TOPOLOGY_TMANAGER_STANDBYS: 2}) for each in (0, 3, 2, 5)]
    assert _job(*specs).managers == ("place-0", "place-2", "place-3")


def test_a_change_names_what_goes_and_keeps_the_rest() -> None:
    """Places that are in both jobs must not be touched."""
    before = _job(_spec(0), _spec(1), _spec(2))
    after = before.without([1]).with_added([_spec(7)], OPTIONS, lambda job, _: f"place-{len(job.containers)}")
    assert after.container_ids == (0, 2, 7)
    assert after.request(2) == before.request(2)
    assert JobChange(before, after, {}).removed == {"place-1"}
    assert JobChange(None, before, {}).removed == frozenset()
    with pytest.raises(SchedulerError, match="container 2 exists already"):
        after.with_added([_spec(2)], OPTIONS, lambda _, container_id: str(container_id))
    with pytest.raises(SchedulerError, match="container 9 is unknown; this job has '0', '2', '7'"):
        after.check_has([9])


def test_a_launch_file_is_small_and_comes_back(tmp_path: Path) -> None:
    """A Secret of Kubernetes has at most 1 MiB for all containers of a job."""
    path = tmp_path / "launch"
    data = encode_launch_file(_spec(3), OPTIONS)
    path.write_bytes(data)
    launch = read_launch_file(path)
    assert launch is not None
    assert (launch.container_id, launch.topology_id, launch.secrets) == (3, "t-1", ("s3cret",))
    assert len(data) < 1000
    path.write_bytes(b"garbage")
    with pytest.raises(SchedulerError, match="cannot be read"):
        read_launch_file(path)
    path.unlink()
    assert read_launch_file(path) is None


def test_an_opened_launch_file_is_private_and_on_no_disk() -> None:
    """It has the passwords of drivers."""
    file = write_launch_file(b"\0launch\xff")
    try:
        path = Path(f"/proc/self/fd/{file}")
        assert path.read_bytes() == b"\0launch\xff"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.readlink(path).startswith("/memfd:")
    finally:
        os.close(file)


def test_the_reason_of_the_cluster_is_shown_while_a_container_does_not_run() -> None:
    """People look at `heron status` for "image missing" before they look at the cluster."""
    waits = Observation(up=False, reason="ErrImagePull: no such image")
    assert container_status(1, None, waits) == ContainerStatus(1, False, 0, "ErrImagePull: no such image")
    lost = ContainerRecord("t", "t-1", 1, 2, ContainerPhase.RUNNING, error=UNSEEN_END)
    killed = Observation(up=True, reason="OOMKilled, exit code 137")
    assert container_status(1, lost, killed) == ContainerStatus(1, True, 2, "OOMKilled, exit code 137")
    assert container_status(1, lost, Observation(up=True)).last_error == UNSEEN_END


def test_a_launcher_that_cannot_begin_is_told() -> None:
    """It may not reach the state manager, and then only its output has the reason."""
    assert "`heron logs` shows why" in container_status(1, None, Observation(up=True)).last_error
    ended = ContainerRecord("t", "t-1", 1, 1, ContainerPhase.ENDED)
    assert container_status(1, ended, Observation(up=True)) == ContainerStatus(1, False, 1)
