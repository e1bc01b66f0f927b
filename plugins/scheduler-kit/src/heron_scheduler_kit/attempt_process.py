"""The process of one attempt of a container: ``python -m heron_scheduler_kit.attempt_process KEYFILE RUN PLACE``.

A supervisor starts it on a machine that it sees only through a cluster without secrets. The launch file is sealed in
its environment. The process opens it, runs the executor, and prints what the executor logs, so that the cluster keeps
it. The file `NOTE` in its working directory tells which process the executor is, and why it has ended.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.private_files import make_private_dir, write_private
from heron.driver_kit.signals import Signals
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron.spi.typed_values import convert_value, decode_json
from heron_scheduler_kit.claim import Claim
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.executor_record import ExecutorRecord, remove_stale_run_dirs
from heron_scheduler_kit.managed.container_output import ContainerOutput
from heron_scheduler_kit.managed.launch_file import LaunchFile
from heron_scheduler_kit.managed.launcher import spec_here
from heron_scheduler_kit.run_dir import own_run_dir
from heron_scheduler_kit.sealing import SealKey

__all__ = ["NOTE", "SEALED", "Note", "run"]

NOTE: Final = "heron.json"
"""The file with a `Note`."""

SEALED: Final = "HERON_SEALED"
"""The variable with the launch file."""

_STDOUT = 1
_LAST_S = 1.0


@dataclass(frozen=True, slots=True)
class Note:
    """The executor: its process, and why it has ended. `own`: it has failed by itself."""

    pid: int = 0
    start: str = ""
    error: str = ""
    own: bool = False


def run(launch: LaunchFile, signals: Signals, note: Callable[[Note], None]) -> Note:
    """Run the executor of a launch file until it ends; SIGTERM or a later attempt ends it in order.

    Raises:
        HeronError, OSError, ValueError: when it cannot be started.
    """
    run_dir = Path(str(launch.spec["run_dir"]))
    attempt = int(str(launch.spec["attempt"]))
    mine = run_dir / f"c{launch.container_id}.{attempt}"  # a later attempt here may begin before this one has ended
    spec_file, logs = mine / f"c{launch.container_id}.json", mine / "logs"
    record = ExecutorRecord(run_dir, launch.container_id)
    own_run_dir(run_dir)
    record.kill_previous()
    remove_stale_run_dirs(run_dir)
    for left in run_dir.glob(f"c{launch.container_id}.[0-9]*"):  # of an attempt that was killed
        shutil.rmtree(left, ignore_errors=True)
    make_private_dir(mine)
    spec = spec_here(launch.spec, attempt, logs)
    write_private(spec_file, json.dumps(spec).encode())
    executor = ExecutorProcess(launch.executor or (sys.executable, "-P", "-m", "heron.executor.main"), spec_file, spec)
    with suppress(OSError):  # without it, a next attempt here waits for the death signal of this one
        record.write(executor.identity)
    note(Note(executor.identity.pid, executor.identity.start))
    output = ContainerOutput(logs, _STDOUT)
    lost: list[str] = []

    def leave(reason: str) -> None:
        lost.append(reason)
        os.kill(os.getpid(), signal.SIGTERM)

    state = convert_value(launch.spec["statemgr"], DriverRef)
    claim = Claim(state, (launch.topology, launch.topology_id), launch.container_id, launch.claim, leave)
    error = _wait(executor, signals, launch.grace_s)
    claim.close(_LAST_S)
    output.close()
    shutil.rmtree(mine, ignore_errors=True)
    if record.is_of(executor.identity):
        record.remove()
    return Note(executor.identity.pid, executor.identity.start, "".join(lost[:1]) or error, executor.at_fault)


def _wait(executor: ExecutorProcess, signals: Signals, grace_s: float) -> str:
    kill_at_s: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(signals.fileno(), selectors.EVENT_READ)
        while (error := executor.ended()) is None:
            if signals.stop_requested and kill_at_s is None:
                executor.terminate()
                kill_at_s = monotonic_s() + grace_s
            if kill_at_s is not None and monotonic_s() >= kill_at_s:
                executor.kill()
            selector.select(None if kill_at_s is None else max(0.05, kill_at_s - monotonic_s()))
            signals.read()
    return error


def _main(key_file: str, topology_id: str, task_id: str) -> int:
    signals = Signals((signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))

    def write(note: Note) -> None:
        file = Path(NOTE)
        file.with_suffix(".new").write_bytes(msgspec.json.encode(note))
        file.with_suffix(".new").replace(file)

    try:
        opened = SealKey.read(Path(key_file)).open(os.environ.pop(SEALED, ""), topology_id, task_id)
        end = run(decode_json(opened, LaunchFile), signals, write)
    except (HeronError, OSError, ValueError) as error:
        end = Note(error=f"it cannot be started on {os.uname().nodename}: {error}")
    write(end)
    if end.error:
        print(end.error, file=sys.stderr)  # noqa: T201 - the sandbox keeps it
    return 1 if end.error else 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
