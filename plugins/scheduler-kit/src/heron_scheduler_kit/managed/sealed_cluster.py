"""The base for clusters that have neither secrets nor an object that only one of several commands can change.

The state manager keeps both, as decision 087 explains:

| node | name | what it is |
|---|---|---|
| JOB | the topology | the stored job; its compare-and-set decides between commands |
| CONTAINER | RUN-PLACE-launch | the launch file of a place, sealed with the key file |

The cluster itself gets one sealed text for all places of a run: how to open that state manager. `sealed_start` is the
first process of a container. It opens both texts, and becomes the launcher.
"""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from heron.driver_kit.node_documents import decode_node, encode_node
from heron.errors import SchedulerError, StateConflictError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron_scheduler_kit.managed.cluster import (
    Cluster,
    JobChangedError,
    JobExistsError,
    StoredJob,
)
from heron_scheduler_kit.managed.launch_file import decode_launch_file
from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.managed_options import ManagedOptions
from heron_scheduler_kit.sealing import SealKey

__all__ = ["SealedCluster", "SealedOptions", "launch_node", "open_reference"]

_FORMAT: Final = 1
_RUN_CHARACTERS: Final = 160  # the end of a run's id is random; the state manager takes names of 200 characters
_START = "heron_scheduler_kit.managed.sealed_start"
_ALL_PLACES = ""


class SealedOptions(ManagedOptions, frozen=True, kw_only=True):
    """The options of such a cluster: `key_file` has the same 32 bytes here and on the machines of the containers."""

    key_file: str = "/etc/heron/seal.key"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.key_file.startswith("/"):
            msg = f"key_file is {self.key_file!r}; use an absolute path, which is the same on all machines"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class _JobNode:
    """`cluster` keeps apart the jobs of several profiles with one state manager."""

    cluster: str
    job: ManagedJob


class SealedCluster(Cluster):
    """Keeps the stored job and the launch files in the state manager. A driver writes the other methods.

    A driver calls `write_launch_files` before it orders places, and removes those of places that have ended.
    """

    def __init__(self, options: SealedOptions, cluster: str) -> None:
        """`cluster` names the cluster, or the part of it, in which jobs of a topology would be the same job."""
        self._options = options
        self._cluster = cluster
        self._state: StateManager | None = None

    def use_state(self, statemgr: StateManager) -> None:
        self._state = statemgr

    def handle(self, job: ManagedJob) -> str:
        """Return the name of a job in the cluster, for people; the default is its topology."""
        return job.topology

    def find(self, topology: str) -> StoredJob | None:
        node = self.statemgr.get(NodeKind.JOB, topology)
        if node is None:
            return None
        found = decode_node(node.value, _JobNode, _FORMAT, (NodeKind.JOB, topology), "stored job")
        if found.cluster != self._cluster:
            return None
        return StoredJob(found.job, str(node.version), self.handle(found.job))

    def reserve(self, job: ManagedJob) -> None:
        self.key()  # before anything is stored
        try:
            self._set(job, MUST_NOT_EXIST)
        except StateConflictError as error:
            raise JobExistsError(job.topology) from error

    def replace(self, job: ManagedJob, version: str) -> None:
        try:
            self._set(job, int(version))
        except StateConflictError as error:
            raise JobChangedError(job.topology) from error

    def release(self, topology: str) -> None:
        if self.find(topology) is not None:
            self.statemgr.delete(NodeKind.JOB, topology)

    @property
    def statemgr(self) -> StateManager:
        """The state manager of the profile. Raises SchedulerError when nobody has given it."""
        if self._state is None:
            msg = f"{self._cluster}: the scheduler needs the state manager of its profile (use_state)"
            raise SchedulerError(msg)
        return self._state

    def key(self) -> SealKey:
        """Return the key of this machine. Raises SchedulerError when it cannot be used."""
        return SealKey.read(Path(self._options.key_file))

    def write_launch_files(self, job: ManagedJob, files: Mapping[str, bytes]) -> str:
        """Write launch files, sealed, and return the sealed text for `start_command`; "" without files.

        Raises:
            SchedulerError: when the key cannot be used.
            StateError: when the state manager does not take them.
        """
        if not files:
            return ""
        key = self.key()
        for place, launch in files.items():
            sealed = key.seal(launch, job.topology_id, place)
            self.statemgr.set(NodeKind.CONTAINER, launch_node(job.topology_id, place), sealed.encode())
        spec = decode_launch_file(next(iter(files.values()))).spec
        return key.seal(zlib.compress(msgspec.json.encode(spec["statemgr"]), 9), job.topology_id, _ALL_PLACES)

    def remove_launch_files(self, topology_id: str, places: Iterable[str] | None = None) -> None:
        """Remove the launch files of places, by default all of a run; those that are gone are no error."""
        if places is None:
            every = launch_node(topology_id, "\0").split("\0")
            names = [each for each in self.statemgr.list(NodeKind.CONTAINER) if _is_between(each, *every)]
        else:
            names = [launch_node(topology_id, place) for place in places]
        for each in names:
            self.statemgr.delete(NodeKind.CONTAINER, each)

    def is_same_reference(self, job: ManagedJob, sealed: str, other: str) -> bool:
        """Return whether two sealed texts of `write_launch_files` open the same state manager."""
        key = self.key()
        try:
            return open_reference(key, sealed, job.topology_id) == open_reference(key, other, job.topology_id)
        except SchedulerError:
            return False  # of another key, or none at all

    def is_stored(self, job: ManagedJob) -> bool:
        """Return whether this run of the job has not been killed."""
        stored = self.find(job.topology)
        return stored is not None and stored.job.topology_id == job.topology_id

    def start_command(self, job: ManagedJob, place: str, sealed: str, host: str) -> str:
        """Return the command of a place, for a shell. `place` and `host` may be words that the cluster replaces."""
        arguments = (self._options.key_file, job.topology_id, sealed)
        command = shlex.join(self._options.python_command(_START, *arguments))
        return f'{HOST_ADDRESS}="{host}" exec {command} "{place}"'

    def _set(self, job: ManagedJob, expected: int) -> None:
        node = encode_node(_JobNode(self._cluster, job), _FORMAT)
        self.statemgr.set(NodeKind.JOB, job.topology, node, expected=expected)


def _is_between(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


def launch_node(topology_id: str, place: str) -> str:
    """Return the name of the node with the launch file of a place."""
    return f"{topology_id[-_RUN_CHARACTERS:]}-{place}-launch"


def open_reference(key: SealKey, sealed: str, topology_id: str) -> DriverRef:
    """Return the state manager of a run from the sealed text of `SealedCluster.write_launch_files`.

    Raises:
        SchedulerError: as `SealKey.open` does.
    """
    plain = zlib.decompress(key.open(sealed, topology_id, _ALL_PLACES))
    return msgspec.json.decode(plain, type=DriverRef)
