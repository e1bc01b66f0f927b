"""The folder of a job, with mode 0700: the files that commands and the supervisor share.

    ROOT/<topology>/lock             flock, passed from command to supervisor, held while the job lives
    ROOT/<topology>/job.json         the job, written once
    ROOT/<topology>/c<N>.json        the spec of a container, the argument of its executor; rewritten
                                     with each attempt, removed with the container
    ROOT/<topology>/control          the supervisor's unix socket
    ROOT/<topology>/avoided.json     the hosts on which no container starts; rewritten by commands
    ROOT/<topology>/processes.json   the processes of the job, so that the orphans of a killed supervisor are found

If the lock is free, the folder was left by a killed supervisor.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError

__all__ = ["JobFolder", "JobRecord"]

_SPEC = re.compile(r"c(?P<id>\d+)\.json")
_SOCKET_PATH_BYTES = 100  # the system's limit is 107 (Linux) or 103 (macOS) bytes


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The content of ``job.json``. `options` are the options of the driver."""

    topology: str
    topology_id: str
    attached: bool
    executor: tuple[str, ...]
    log_dir: str
    run_dirs: tuple[str, ...]
    backoff_s: float
    backoff_max_s: float
    stable_s: float
    grace_s: float
    restart_limit: int = 0
    options: dict[str, object] = field(default_factory=dict)


class JobFolder:
    """The paths and the lock of one job."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def job_file(self) -> Path:
        return self.path / "job.json"

    @property
    def processes_file(self) -> Path:
        return self.path / "processes.json"

    def spec_file(self, container_id: int) -> Path:
        return self.path / f"c{container_id}.json"

    def container_ids(self) -> tuple[int, ...]:
        """Return the containers that have a spec: those of the job."""
        found = map(_SPEC.fullmatch, os.listdir(self.path))
        return tuple(sorted(int(each["id"]) for each in found if each))

    def write_job(self, record: JobRecord) -> None:
        write_private(self.job_file, json.dumps(asdict(record)).encode())

    def read_job(self) -> JobRecord | None:
        """Read ``job.json``; None when it is missing or incomplete."""
        try:
            found = json.loads(self.job_file.read_bytes())
            lists = {key: tuple(found[key]) for key in ("executor", "run_dirs")}
            known = {each.name for each in fields(JobRecord)}  # another version may have written more fields
            return JobRecord(**{key: value for key, value in {**found, **lists}.items() if key in known})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write_avoided(self, hosts: Sequence[str]) -> None:
        """Write on which hosts no container starts; nothing if that is what the file says."""
        if tuple(hosts) != self.avoided():
            write_private(self.path / "avoided.json", json.dumps(list(hosts)).encode())

    def avoided(self) -> tuple[str, ...]:
        """Return the hosts on which no container starts; none without the file."""
        try:
            return tuple(map(str, json.loads((self.path / "avoided.json").read_bytes())))
        except (OSError, ValueError):
            return ()

    def topology_id(self) -> str:
        """Return the id of the run of this job; "" when there is no job or its file is unreadable."""
        record = self.read_job()
        return record.topology_id if record is not None else ""

    def is_of_another(self, topology_id: str) -> bool:
        """Return whether the job certainly belongs to another run; "" means any run."""
        return bool(topology_id) and self.topology_id() not in {"", topology_id}

    def lock(self, *, make: bool) -> int | None:
        """Take the lock and return its descriptor; None when the job lives, or there is no folder and not `make`."""
        while True:
            if make:
                self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT  # a command may die after the mkdir
                descriptor = os.open(self.path / "lock", flags, 0o600)
            except FileNotFoundError:
                if make:
                    continue  # the supervisor ended and removed the folder meanwhile
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path / "lock")):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                return None
            except FileNotFoundError:
                pass
            os.close(descriptor)  # the folder was removed or created again meanwhile: try again

    def empty(self) -> None:
        """Remove everything except the lock; only the owner of the lock may call it."""
        for entry in list(self.path.iterdir()) if self.path.is_dir() else []:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != "lock":
                entry.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder; only the owner of the lock may call it."""
        self.empty()
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()  # fails, as intended, when another command has just taken it

    @contextmanager
    def socket_path(self) -> Iterator[str]:
        """Yield a path of the control socket that fits the limit of the system, for any length of `root`."""
        path = str(self.path / "control")
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
            yield path
            return
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            short = f"/proc/self/fd/{descriptor}"
            if not os.path.isdir(short):
                message = f"{path}: longer than {_SOCKET_PATH_BYTES} bytes; set scheduler.root to a shorter folder"
                raise SchedulerError(message)
            yield f"{short}/control"
        finally:
            os.close(descriptor)
