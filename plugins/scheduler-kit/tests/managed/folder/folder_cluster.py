"""A cluster that is a folder: launchers are processes of this machine, with nobody who starts them again.

It shows all of `Cluster` in few lines, and lets the contract suite run the base without a server. Two names
are its hosts.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self

from heron.driver_kit.private_files import make_private_dir, write_private
from heron.spi.options import decode_options
from heron.spi.scheduler import JobLink
from heron_scheduler_kit.managed.cluster import (
    Cluster,
    JobChange,
    JobChangedError,
    JobExistsError,
    Observation,
    StoredJob,
)
from heron_scheduler_kit.managed.managed_job import ManagedJob, decode_job, encode_job
from heron_scheduler_kit.managed.managed_options import ManagedOptions
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_kit.managed.sealed_cluster import SealedCluster, SealedOptions
from heron_testing.contracts.scheduler import runs

__all__ = ["FolderCluster", "FolderOptions", "FolderScheduler", "SealedFolderScheduler"]

_STARTED: list[subprocess.Popen[bytes]] = []  # children of this process, also of former clusters
_HOSTS = ("left", "right")
_LAUNCHER = (sys.executable, "-P", "-m", "heron_scheduler_kit.managed.launcher")


class FolderOptions(ManagedOptions, frozen=True):
    folder: str = ""


class FolderCluster(Cluster):
    """``FOLDER/<topology>/job`` is the stored job; ``NAME.launch``, ``NAME.pid``, ``NAME.host`` and ``NAME.out`` are a
    place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, timeout_s: float) -> str:
        del timeout_s
        return f"folder {self._folder}"

    def find(self, topology: str) -> StoredJob | None:
        for each in _STARTED:
            each.poll()
        try:
            version, _, text = self._job(topology).read_text().partition("\n")
        except OSError:
            return None
        return StoredJob(decode_job(text, str(self._job(topology)), topology), version, topology)

    def reserve(self, job: ManagedJob) -> None:
        make_private_dir(self._home(job.topology))
        with self._locked():
            if self._job(job.topology).exists():
                raise JobExistsError(job.topology)
            write_private(self._job(job.topology), f"1\n{encode_job(job)}".encode())

    def replace(self, job: ManagedJob, version: str) -> None:
        with self._locked():
            found = self.find(job.topology)
            if found is None or found.version != version:
                raise JobChangedError(job.topology)
            write_private(self._job(job.topology), f"{int(version) + 1}\n{encode_job(job)}".encode())

    def apply(self, change: JobChange) -> None:
        self._end_places(change)
        for place, launch in change.files.items():
            path = self._home(change.after.topology) / f"{place}.launch"
            write_private(path, launch)
            self._start_place(change.after.topology, place, (*_LAUNCHER, str(path)))

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        found = {path.stem: self._pid(path) for path in self._home(job.topology).glob("*.pid")}
        hosts = {path.stem: path.read_text() for path in self._home(job.topology).glob("*.host")}
        return {place: Observation(runs(pid), f"process {pid}", host=hosts[place]) for place, pid in found.items()}

    def move(self, job: ManagedJob, place: str) -> None:
        if set(_HOSTS) - self.avoided:
            self._signal(job.topology, place, signal.SIGKILL)  # the fake executor ends for good at SIGTERM
            path = self._home(job.topology) / f"{place}.launch"
            self._start_place(job.topology, place, (*_LAUNCHER, str(path)))

    def end(self, topology: str) -> None:
        for path in self._home(topology).glob("*.pid"):
            self._signal(topology, path.stem, signal.SIGTERM)

    def remains(self, topology: str) -> Sequence[str]:
        self.find(topology)
        return [path.stem for path in self._home(topology).glob("*.pid") if runs(self._pid(path))]

    def release(self, topology: str) -> None:
        for path in self._home(topology).glob("*"):
            path.unlink()

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        return (JobLink("folder", str(self._home(stored.job.topology))),)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        path = self._home(job.topology) / f"{job.request(container_id).place}.out"
        return path.read_text().splitlines()[-lines:]

    def _end_places(self, change: JobChange) -> None:
        for place in change.removed:
            self._signal(change.after.topology, place, signal.SIGKILL if place in change.stuck else signal.SIGTERM)

    def _start_place(self, topology: str, place: str, command: Sequence[str]) -> None:
        home = self._home(topology)
        (home / f"{place}.host").write_text(next(each for each in _HOSTS if each not in self.avoided))
        with (home / f"{place}.out").open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, cwd=home)
        (home / f"{place}.pid").write_text(str(process.pid))
        _STARTED.append(process)

    def _home(self, topology: str) -> Path:
        return self._folder / topology

    def _job(self, topology: str) -> Path:
        return self._home(topology) / "job"

    def _signal(self, topology: str, place: str, number: signal.Signals) -> None:
        with suppress(OSError, ValueError):
            os.kill(self._pid(self._home(topology) / f"{place}.pid"), number)

    @staticmethod
    def _pid(path: Path) -> int:
        return int(path.read_text() or 0)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class FolderScheduler(ManagedScheduler):
    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "shared", "update"})
    options_type: ClassVar[type] = FolderOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, FolderOptions, "scheduler")
        return cls(decoded, FolderCluster(Path(decoded.folder)))


class SealedFolderOptions(SealedOptions, frozen=True, kw_only=True):
    folder: str = ""


class SealedFolderCluster(SealedCluster):
    """The same folder as a cluster without secrets: `FolderCluster` has the processes, the state manager the rest."""

    def __init__(self, options: SealedFolderOptions) -> None:
        super().__init__(options, f"folder {options.folder}")
        self._places = FolderCluster(Path(options.folder))

    def check(self, timeout_s: float) -> str:
        return self._places.check(timeout_s)

    def apply(self, change: JobChange) -> None:
        self._places._end_places(change)
        self.remove_launch_files(change.after.topology_id, change.removed)
        sealed = self.write_launch_files(change.after, change.files)
        for place in change.files:
            make_private_dir(self._places._home(change.after.topology))
            command = self.start_command(change.after, place, sealed, "127.0.0.1")
            self._places._start_place(change.after.topology, place, ("/bin/sh", "-c", command))

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        return self._places.observe(job)

    def end(self, topology: str) -> None:
        self._places.end(topology)
        if (stored := self.find(topology)) is not None:
            self.remove_launch_files(stored.job.topology_id)

    def remains(self, topology: str) -> Sequence[str]:
        return self._places.remains(topology)

    def release(self, topology: str) -> None:
        self._places.release(topology)
        super().release(topology)

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        return self._places.links(stored)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        return self._places.output(job, container_id, lines)


class SealedFolderScheduler(FolderScheduler):
    capabilities: ClassVar[frozenset[str]] = FolderScheduler.capabilities - {"avoid"}
    options_type: ClassVar[type] = SealedFolderOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, SealedFolderOptions, "scheduler")
        return cls(decoded, SealedFolderCluster(decoded))
