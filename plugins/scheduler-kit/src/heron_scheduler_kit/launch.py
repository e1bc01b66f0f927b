"""Starts the supervisor of a job; after a failure nothing of the job is left."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import spawn
from heron.driver_kit.private_files import make_private_dir, write_private
from heron.errors import SchedulerError
from heron.spi.scheduler import Job
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.options import SupervisionOptions
from heron_scheduler_kit.run_dir import own_run_dir

__all__ = ["launch", "start_supervisor"]

_STOP_S = 10.0
_LOOK_S = 0.1

# -P: a file in the user's folder must not replace a module of Heron.
_PYTHON = (sys.executable, "-P", "-m")


def launch(
    folder: JobFolder,
    lock: int,
    job: Job,
    options: SupervisionOptions,
    supervisor: str,
    look: Callable[[], None],
    avoided: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Write the files of the job and start its supervisor, which inherits the lock; return when it has taken over.

    `supervisor` is the module of the supervisor. `look` is called during the wait; its exceptions end the wait.
    No container starts on a host of `avoided`.

    Raises:
        SchedulerError: when a folder, a file or a process cannot be created. A supervisor that had started may still be
            ending the job.
    """
    made: list[Path] = []
    record = _record(job, options)
    try:
        folder.write_job(record)  # first: it names the run directories, in case this command is killed
        folder.write_avoided(avoided)
        made.extend(path for path in map(Path, record.run_dirs) if own_run_dir(path))
        for log_dir in sorted({spec.log_dir for spec in job.containers}):
            make_private_dir(Path(log_dir))
        for spec in job.containers:
            write_private(folder.spec_file(spec.container_id), msgspec.json.encode(spec))
    except BaseException as error:
        for run_dir in made:
            shutil.rmtree(run_dir, ignore_errors=True)
        folder.remove()
        if isinstance(error, OSError):
            message = f"topology {job.topology!r} cannot be scheduled: {error}; make room, or choose another folder"
            raise SchedulerError(message) from error
        raise
    return start_supervisor(folder, lock, record, supervisor, look, options.take_over_s)


def _record(job: Job, options: SupervisionOptions) -> JobRecord:
    return JobRecord(
        topology=job.topology,
        topology_id=job.topology_id,
        attached=job.attached,
        executor=options.executor,
        log_dir=job.containers[0].log_dir,
        run_dirs=tuple(sorted({spec.run_dir for spec in job.containers})),
        backoff_s=options.restart_backoff_s,
        backoff_max_s=options.restart_backoff_max_s,
        stable_s=options.stable_s,
        grace_s=options.stop_grace_s,
        restart_limit=options.restart_limit,
        options=msgspec.to_builtins(options),
    )


def start_supervisor(
    folder: JobFolder, lock: int, record: JobRecord, module: str, look: Callable[[], None], take_over_s: float
) -> subprocess.Popen[bytes]:
    """Start the supervisor of a job whose files exist; return when it has taken over. Raises as `launch` does."""
    reader, ready = os.pipe()
    try:
        with Path(record.log_dir, "supervisor.err").open("wb") as stderr:
            supervisor = spawn(
                [*_PYTHON, module, str(folder.job_file), str(lock), str(ready)],
                stdout=stderr,
                death_signal=signal.SIGTERM if record.attached else None,
                detached=True,
                pass_fds=(lock, ready),
            )
        os.close(ready)
        ready = -1
        try:
            if error := _wait_for_report(reader, take_over_s, look):
                message = f"topology {record.topology!r} cannot be scheduled: {error}"
                raise SchedulerError(message)
        except BaseException:
            _end(supervisor)  # a detached supervisor is not a child of this process, and its parent has ended
            raise
        if not record.attached:
            supervisor.wait(_STOP_S)
        return supervisor
    finally:
        os.close(reader)
        if ready >= 0:
            os.close(ready)


def _wait_for_report(reader: int, limit_s: float, look: Callable[[], None]) -> str:
    """Return the error that the supervisor reports; "" when it has taken over."""
    deadline_s = monotonic_s() + limit_s
    look()
    while not select.select([reader], [], [], _LOOK_S)[0]:
        look()
        if monotonic_s() > deadline_s:
            return f"its supervisor did not start within {limit_s:g} s; is the machine overloaded?"
    word = os.read(reader, 4096)
    return word.decode(errors="replace").strip() if word else "its supervisor ended; see supervisor.err in its logs"


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    supervisor.terminate()
    try:
        supervisor.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
