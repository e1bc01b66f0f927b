"""Stored jobs and sealed launch files in the state manager, and the process that opens them in a container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from heron.driver_kit.large_values import open_statemgr
from heron.errors import ConfigError, SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.options import decode_options
from heron.spi.scheduler import ContainerSpec, JobLink
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.managed.cluster import (
    JobChange,
    JobChangedError,
    JobExistsError,
    Observation,
    StoredJob,
)
from heron_scheduler_kit.managed.launch_file import decode_launch_file, encode_launch_file
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.sealed_cluster import SealedCluster, SealedOptions, open_reference
from heron_scheduler_kit.managed.sealed_start import fetch_launch_file
from heron_scheduler_kit.sealing import SealKey

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_NONE = DriverRef("none", "none", "none:None")
_JOB = ManagedJob("t", "t-1", containers=(ContainerRequest(0, "0", 1.0, 512),))


class _Places(SealedCluster):
    """A cluster whose places do nothing."""

    def check(self, timeout_s: float) -> str:
        raise NotImplementedError

    def apply(self, change: JobChange) -> None:
        raise NotImplementedError

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        raise NotImplementedError

    def end(self, topology: str) -> None:
        raise NotImplementedError

    def remains(self, topology: str) -> Sequence[str]:
        raise NotImplementedError

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        raise NotImplementedError

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        raise NotImplementedError


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


@pytest.fixture
def state(tmp_path: Path) -> DriverRef:
    return DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")}, secrets=("s3cret",))


@pytest.fixture
def opened(key_file: Path, state: DriverRef) -> Iterator[Callable[[str], _Places]]:
    """Opens a cluster, as one command does."""
    statemgr = open_statemgr(state)

    def open_cluster(name: str) -> _Places:
        cluster = _Places(SealedOptions(key_file=str(key_file), python=sys.executable), name)
        cluster.use_state(statemgr)
        return cluster

    yield open_cluster
    statemgr.close()


def test_one_of_several_commands_gets_the_name(opened: Callable[[str], _Places]) -> None:
    """The compare-and-set of the state manager decides, also between changes of the stored job."""
    first, second = opened("one"), opened("one")
    first.reserve(_JOB)
    with pytest.raises(JobExistsError):
        second.reserve(replace(_JOB, topology_id="t-2"))
    stored = second.find("t")
    assert stored is not None
    assert stored.job == _JOB
    grown = replace(_JOB, standbys=1)
    first.replace(grown, stored.version)
    with pytest.raises(JobChangedError):
        second.replace(_JOB, stored.version)
    found = second.find("t")
    assert found is not None
    assert found.job == grown
    first.release("t")
    first.release("t")
    assert second.find("t") is None
    with pytest.raises(JobChangedError):
        second.replace(_JOB, found.version)


def test_another_cluster_does_not_see_the_job(opened: Callable[[str], _Places]) -> None:
    """Two profiles may have one state manager. The name is taken there, and the job belongs to one of them."""
    opened("one").reserve(_JOB)
    assert opened("two").find("t") is None
    with pytest.raises(JobExistsError):
        opened("two").reserve(_JOB)
    opened("two").release("t")
    assert opened("one").find("t") is not None


def test_launch_files_are_sealed_and_removed(
    opened: Callable[[str], _Places], key_file: Path, state: DriverRef
) -> None:
    """What the state manager and the cluster get shows no secret; only the place of that run opens it."""
    cluster = opened("one")
    launch = _launch(state, 0)
    sealed = cluster.write_launch_files(_JOB, {"0": launch, "12": _launch(state, 12)})
    names = cluster.statemgr.list(NodeKind.CONTAINER)
    assert names == ("t-1-0-launch", "t-1-12-launch")
    key = SealKey.read(key_file)
    assert open_reference(key, sealed, "t-1") == state
    assert decode_launch_file(fetch_launch_file(key, state, "t-1", "12")).container_id == 12
    with pytest.raises(SchedulerError, match="run 't-2'"):
        open_reference(key, sealed, "t-2")
    with pytest.raises(SchedulerError, match="place 3 of run 't-1' has no launch file"):
        fetch_launch_file(key, state, "t-1", "3")
    cluster.statemgr.set(NodeKind.CONTAINER, "t-1-1", b"{}")
    cluster.remove_launch_files("t-1", ["12"])
    assert cluster.statemgr.list(NodeKind.CONTAINER) == ("t-1-0-launch", "t-1-1")
    cluster.remove_launch_files("t-1")
    cluster.remove_launch_files("t-1", ["0"])
    assert cluster.statemgr.list(NodeKind.CONTAINER) == ("t-1-1",)


def test_a_container_without_the_key_says_why_it_does_not_start(
    opened: Callable[[str], _Places], key_file: Path, state: DriverRef, tmp_path: Path
) -> None:
    """The cluster keeps its output; it has the file, the machine and the remedy, and no secret."""
    cluster = opened("one")
    sealed = cluster.write_launch_files(_JOB, {"0": _launch(state, 0)})
    command = cluster.start_command(_JOB, "$PLACE", sealed, "$HOST")
    key_file.chmod(0o644)
    said = _run(command, tmp_path, "0")
    assert f"too many users can access the key file {key_file} on {os.uname().nodename}" in said
    key_file.chmod(0o600)
    assert "place 7 of run 't-1' has no launch file" in _run(command, tmp_path, "7")
    key_file.write_bytes(os.urandom(32))
    said = _run(command, tmp_path, "0")
    assert "was sealed with key" in said
    assert "s3cret" not in said


def test_a_launch_file_is_small(opened: Callable[[str], _Places], state: DriverRef) -> None:
    """A cluster keeps the one text with each container; the limit of one argument is 128 KiB."""
    sealed = opened("one").write_launch_files(_JOB, {"0": _launch(state, 0)})
    assert len(sealed) < 1000


def test_the_key_file_has_the_same_path_everywhere() -> None:
    """The command of a container names it."""
    with pytest.raises(ConfigError, match="absolute path"):
        decode_options({"key_file": "~/key"}, SealedOptions, "scheduler")


def _launch(state: DriverRef, container_id: int) -> bytes:
    spec = ContainerSpec("t", "t-1", container_id, 1, "/r", "/l", "", state, _NONE)
    return encode_launch_file(spec, SealedOptions())


def _run(command: str, folder: Path, place: str) -> str:
    """Run the command of a place; it fails, and this returns what it has said."""
    env = {**os.environ, "PLACE": place, "HOST": "127.0.0.1"}
    ran = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 1
    return str(msgspec.json.decode(ran.stdout.splitlines()[-1], type=dict[str, object])["message"])
