"""The folder of a job, mode 0700: what the command and the supervisor know of each other.

    ROOT/<topology>/lock             flock: held by the supervisor (taken over from the command) while the job lives
    ROOT/<topology>/job.json         what to supervise, written once
    ROOT/<topology>/c<N>.json        the spec of a container, there for as long as the job has the container, rewritten
                                     with each attempt; the executor's argument
    ROOT/<topology>/control          the supervisor's unix socket
    ROOT/<topology>/processes.json   who runs, so that what a killed supervisor left can be found

A folder whose lock is free is what a killed supervisor left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
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
    """``job.json``; `options` are the driver's, where it needs more than this."""

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
    """The paths of one job, and the lock."""

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
        """The containers that the job has now: those that have a spec."""
        found = map(_SPEC.fullmatch, os.listdir(self.path))
        return tuple(sorted(int(each["id"]) for each in found if each))

    def write_job(self, record: JobRecord) -> None:
        write_private(self.job_file, json.dumps(asdict(record)).encode())

    def read_job(self) -> JobRecord | None:
        """None when there is none, or only a part of one."""
        try:
            found = json.loads(self.job_file.read_bytes())
            lists = {key: tuple(found[key]) for key in ("executor", "run_dirs")}
            known = {each.name for each in fields(JobRecord)}  # another version may have written more
            return JobRecord(**{key: value for key, value in {**found, **lists}.items() if key in known})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def topology_id(self) -> str:
        """The run whose job this is; "" when there is none, or it cannot be told."""
        record = self.read_job()
        return record.topology_id if record is not None else ""

    def is_of_another(self, topology_id: str) -> bool:
        """Whether this is known to be the job of another run than this one; "" stands for any."""
        return bool(topology_id) and self.topology_id() not in {"", topology_id}

    def lock(self, *, make: bool) -> int | None:
        """The descriptor of the lock, taken; None when the job lives, or without `make` when there is no folder."""
        while True:
            if make:
                self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT  # a command may die between the two
                descriptor = os.open(self.path / "lock", flags, 0o600)
            except FileNotFoundError:
                if make:
                    continue  # the folder went away in between: its supervisor ended
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
            os.close(descriptor)  # the lock of a folder that is gone or was made anew: look again

    def empty(self) -> None:
        """Removes everything but the lock; by the owner of the lock only."""
        for entry in list(self.path.iterdir()) if self.path.is_dir() else []:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != "lock":
                entry.unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes the folder; by the owner of the lock only, who is its last user."""
        self.empty()
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()  # fails, as it should, when another command has just taken it

    @contextmanager
    def socket_path(self) -> Iterator[str]:
        """A path of the control socket that is short enough for the system, whatever the length of `root`."""
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
