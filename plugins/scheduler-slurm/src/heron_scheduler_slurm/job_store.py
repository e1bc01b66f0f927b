"""The stored jobs: a folder for each topology on the shared file system, changed by renames and links alone.

``ROOT/TOPOLOGY/job.N`` is version N of the job. For each place there are ``PLACE.launch`` (with secrets, mode 0600),
``PLACE.sh`` and ``PLACE.out``. Renames and links are atomic on network file systems too, where locks may not work.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir, write_private
from heron.errors import SchedulerError
from heron_scheduler_kit.managed.cluster import JobChangedError, JobExistsError, StoredJob
from heron_scheduler_kit.managed.managed_job import ManagedJob, decode_job, encode_job

__all__ = ["JobStore"]


class JobStore:
    """The folder `root`. All methods raise SchedulerError when the file system refuses."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self) -> None:
        """Raise SchedulerError unless jobs can be stored; changes nothing."""
        exists = next(each for each in (self._root, *self._root.absolute().parents) if each.exists())
        with self._refusing(), tempfile.TemporaryDirectory(prefix=".check-", dir=exists):
            pass

    def home(self, topology: str) -> Path:
        """Return the folder of a topology."""
        return self._root / topology

    def find(self, topology: str) -> StoredJob | None:
        """Return the newest version of a job; None without one."""
        with self._refusing():
            while newest := self._newest(topology):
                with suppress(FileNotFoundError):  # it was replaced meanwhile
                    text = self._version(topology, newest).read_text(encoding="utf-8")
                    job = decode_job(text, str(self.home(topology)), topology)
                    return StoredJob(job, str(newest), f"heron.{topology}.*")
        return None

    def add(self, job: ManagedJob) -> None:
        """Store a new job. Raises JobExistsError."""
        with self._refusing():
            make_private_dir(self._root)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self._root, ignore_cleanup_errors=True) as made:
                write_private(Path(made, "job.1"), encode_job(job).encode())
                try:
                    os.rename(made, self.home(job.topology))  # fails if the folder exists and is not empty
                except OSError as error:
                    if self._newest(job.topology):
                        raise JobExistsError(job.topology) from error
                    raise

    def replace(self, job: ManagedJob, version: str) -> None:
        """Store the next version of a job. Raises JobChangedError."""
        before = self._version(job.topology, int(version))
        written = before.with_name(f"new.{os.getpid()}")
        with self._refusing():
            try:
                write_private(written, encode_job(job).encode())
                before.stat()  # without it, the job has changed twice
                os.link(written, self._version(job.topology, int(version) + 1))
                before.unlink()
            except (FileExistsError, FileNotFoundError) as error:
                raise JobChangedError(job.topology) from error
            finally:
                written.unlink(missing_ok=True)

    def remove(self, topology: str) -> None:
        """Remove the folder of a topology, at once for all who look."""
        if not self.home(topology).exists():
            return
        with (
            self._refusing(),
            tempfile.TemporaryDirectory(prefix=".old-", dir=self._root, ignore_cleanup_errors=True) as place,
            suppress(FileNotFoundError),  # another command has removed it
        ):
            os.rename(self.home(topology), Path(place, topology))

    def write(self, topology: str, place: str, launch: bytes, script: str) -> Path:
        """Write the files of a place; return the path of its script."""
        with self._refusing():
            for name, data in {"launch": launch, "out": b""}.items():
                write_private(self.home(topology) / f"{place}.{name}", data)
        return self.write_script(topology, place, script)

    def write_script(self, topology: str, place: str, script: str) -> Path:
        """Write the script of a place, from which its next jobs are submitted; return its path."""
        path = self.home(topology) / f"{place}.sh"
        with self._refusing():
            write_private(path, script.encode())
        return path

    def withdraw(self, topology: str, place: str = "*") -> None:
        """Remove the launch file of a place, or all: their jobs end for good."""
        with self._refusing():
            for each in self.home(topology).glob(f"{place}.launch"):
                each.unlink(missing_ok=True)

    def _newest(self, topology: str) -> int:
        return max((int(each.suffix[1:]) for each in self.home(topology).glob("job.[0-9]*")), default=0)

    def _version(self, topology: str, number: int) -> Path:
        return self.home(topology) / f"job.{number}"

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            remedy = "set scheduler.root to a folder that you may write, and that all nodes share"
            msg = f"the folder of Slurm's jobs {self._root}: {error}; {remedy}"
            raise SchedulerError(msg) from error
