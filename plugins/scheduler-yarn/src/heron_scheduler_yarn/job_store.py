"""The stored jobs: a folder for each topology in HDFS, changed by renames alone, which are atomic there.

``ROOT/TOPOLOGY/run.RANDOM/job.N`` is version N of the job; the newest one counts. ``SERVICE/PLACE.launch`` beside it is
a launch file (with secrets, mode 0600) of a service. A folder has mode 0700. Because of the random part, a change of an
older run finds no folder.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from heron.errors import SchedulerError
from heron_hdfs_kit.web_hdfs import HdfsErrors, WebHdfs
from heron_scheduler_kit.managed.cluster import JobChangedError, JobExistsError, StoredJob
from heron_scheduler_kit.managed.managed_job import ManagedJob, decode_job, encode_job
from heron_scheduler_yarn.yarn_access import YarnAccess

__all__ = ["JobStore"]

_ANSWER_S = 4.0  # a call of a driver takes 5 s at most
_RUN, _JOB, _LAUNCH = "run.", "job.", ".launch"
_ERRORS = HdfsErrors("scheduler", "remove files", SchedulerError, SchedulerError, "the topology was killed meanwhile")


class JobStore:
    """The folder of the jobs. All methods raise SchedulerError when HDFS refuses or does not answer."""

    def __init__(self, access: Callable[[], YarnAccess]) -> None:
        """`access` is called for each operation."""
        self._access = access

    def check(self, timeout_s: float) -> str:
        """Ask whether the folder can be used; return what it is, in words."""
        return self._access().files.check(_ERRORS, timeout_s, "submit")

    def find(self, topology: str) -> StoredJob | None:
        """Return the newest version of a job; None without one."""
        with self._session() as hdfs:
            run = self._run(hdfs, topology)
            found = hdfs.entries(run) if run else ()
            numbers = [int(each.name[len(_JOB) :]) for each in found if each.name.startswith(_JOB)]
            if not numbers:
                return None
            path = f"{run}/{_JOB}{max(numbers)}"
            text = b"".join(hdfs.read(path, 0)).decode()
            return StoredJob(decode_job(text, path, topology), path)

    def add(self, job: ManagedJob) -> None:
        """Store a new job. Raises JobExistsError."""
        with self._session() as hdfs:
            made = f"{self._access().files.root}/.new-{secrets.token_hex(8)}"
            run = f"{made}/{_RUN}{secrets.token_hex(8)}"
            hdfs.make_folder(run)
            hdfs.write(f"{run}/{_JOB}1", [encode_job(job).encode()])
            if not hdfs.move(made, self.home(job.topology)):
                hdfs.remove(made)
                raise JobExistsError(job.topology)

    def replace(self, job: ManagedJob, version: str) -> None:
        """Store the next version of a job. Raises JobChangedError."""
        run, _, number = version.rpartition(_JOB)
        with self._session() as hdfs:
            written = f"{self._access().files.root}/.new-{secrets.token_hex(8)}"
            hdfs.write(written, [encode_job(job).encode()])
            if not hdfs.move(written, f"{run}{_JOB}{int(number) + 1}"):
                hdfs.remove(written)
                raise JobChangedError(job.topology)

    def remove(self, topology: str) -> None:
        """Remove the folder of a topology, at once for all who look."""
        with self._session() as hdfs:
            old = f"{self._access().files.root}/.old-{secrets.token_hex(8)}"
            if hdfs.move(self.home(topology), old):
                hdfs.remove(old)

    def home(self, topology: str) -> str:
        """Return the path of the folder of a topology."""
        return f"{self._access().files.root}/{topology}"

    def services(self, topology: str) -> dict[str, dict[str, str]]:
        """Return the services of a topology: the paths of the launch files, by place and by name of the service."""
        with self._session() as hdfs:
            run = self._run(hdfs, topology)
            names = [each.name for each in hdfs.entries(run) if each.is_folder] if run else []
            return {
                name: {
                    each.name.removesuffix(_LAUNCH): f"{run}/{name}/{each.name}"
                    for each in hdfs.entries(f"{run}/{name}")
                }
                for name in sorted(names)
            }

    def add_service(self, topology: str, name: str, files: Mapping[str, bytes]) -> dict[str, str]:
        """Write the launch files of a new service, by place; return their paths."""
        with self._session() as hdfs:
            run = self._run(hdfs, topology)
            made = f"{self._access().files.root}/.new-{secrets.token_hex(8)}"
            hdfs.make_folder(made)
            for place, launch in files.items():
                hdfs.write(f"{made}/{place}{_LAUNCH}", [launch])
            if not run or not hdfs.move(made, f"{run}/{name}"):
                hdfs.remove(made)
                msg = f"topology {topology!r} was killed meanwhile"
                raise SchedulerError(msg)
            return {place: f"{run}/{name}/{place}{_LAUNCH}" for place in files}

    def withdraw(self, path: str) -> None:
        """Remove a launch file, or the folder of a service."""
        with self._session() as hdfs:
            hdfs.remove(path)

    def _run(self, hdfs: WebHdfs, topology: str) -> str:
        """Return the folder of the run; empty without one."""
        home = self.home(topology)
        found = [each.name for each in hdfs.entries(home) if each.name.startswith(_RUN)]
        return f"{home}/{found[0]}" if found else ""

    @contextmanager
    def _session(self) -> Iterator[WebHdfs]:
        with self._access().files.connected(_ERRORS) as hdfs:
            hdfs.limit(_ANSWER_S)
            yield hdfs
