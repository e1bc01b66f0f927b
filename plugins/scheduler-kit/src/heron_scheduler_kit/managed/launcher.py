"""The process that a cluster keeps alive for each place: ``python -m heron_scheduler_kit.managed.launcher LAUNCHFILE``.

It starts the executor of its container, restarts it, and does what the record of the container asks. It ends by
SIGTERM or SIGINT, or when the record is gone because the job was killed: a cluster that has lost the machine cannot end
it. In all other cases it stays: clusters start a container again that ends, and a container that has ended or was given
up must not start again.

Clusters see that a launcher has ended, not that it hangs. So a watchdog ends one whose loop has not come round for two
minutes, with the stacks of its threads on stderr.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import selectors
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.log import JsonLines
from heron.driver_kit.planned_runs import begin_run, stored_package_uri
from heron.driver_kit.private_files import write_private
from heron.driver_kit.signals import EXIT_TERMINATED, Signals
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.managed.container_life import (
    ExecutorEnd,
    RestartLimits,
    Step,
    claimed,
    ended,
    next_step,
    removed,
)
from heron_scheduler_kit.managed.container_output import ContainerOutput
from heron_scheduler_kit.managed.container_records import ContainerRecord, ContainerRecords
from heron_scheduler_kit.managed.launch_file import LaunchFile, read_launch_file
from heron_scheduler_kit.run_dir import own_run_dir
from heron_scheduler_kit.supervision import BackoffLimits

__all__ = ["HOST_ADDRESS", "Launcher", "begin_planned", "spec_here"]

HOST_ADDRESS = "HERON_HOST_ADDRESS"
"""The variable with the address of the container in its cluster, for a profile that leaves `heron.network.host`."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_LISTEN = "heron.network.host"
_LOOPBACK = "127.0.0.1"
_RETRY_S = 1.0
_HANG_S = 120.0  # far more than any time limit of a state manager
_BY_CLUSTER = "the cluster ended its launcher (SIGTERM)"
_STDOUT = 1

_log = logging.getLogger(__name__)


class Launcher:
    """One container, from the claim of its first attempt here to its end. Used from the main thread."""

    def __init__(
        self, launch: LaunchFile, statemgr: StateManager, signals: Signals, *, hang_s: float = _HANG_S
    ) -> None:
        """Begin to follow the record. Raises StateError when the state manager does not answer.

        `hang_s` is the longest time between two rounds of `run`; after it the process ends with exit code 1.
        """
        self._launch = launch
        self._hang_s = hang_s
        self._statemgr = statemgr
        self._records = ContainerRecords(statemgr, launch.topology_id)
        waits = BackoffLimits(launch.backoff_s, launch.backoff_max_s, launch.stable_s)
        self._limits = RestartLimits(waits, launch.restart_limit)
        self._run_dir = Path(str(launch.spec["run_dir"]))
        self._logs = self._run_dir / f"c{launch.container_id}.logs"
        self._executor: ExecutorProcess | None = None
        self._output: ContainerOutput | None = None
        self._attempt = 0
        self._superseded = False
        self._left = False
        self._started_at_s = 0.0
        self._kill_at_s = float("inf")
        self._start_at_s: float | None = None
        self._signals = signals
        self._selector = selectors.DefaultSelector()
        self._waking, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._waking, selectors.EVENT_READ)
        self._selector.register(signals.fileno(), selectors.EVENT_READ)
        self._seen: ContainerRecord | None = None
        self._watch = self._records.watch(launch.container_id, self._changed)

    def run(self) -> None:
        """Keep the container until SIGTERM, SIGINT or the end of its job; then end the executor in order."""
        self._restart_watchdog()
        while not self._signals.stop_requested and not self._left:
            try:
                self._step()
            except HeronError as error:
                _log.warning("container %d waits: %s", self._launch.container_id, error)
                self._wait(_RETRY_S)
        self._end_executor()
        self._look_at_executor()
        while self._executor is not None:
            self._wait(self._kill_at_s - monotonic_s())
            self._look_at_executor()

    def close(self) -> None:
        """End the watch, and remove what the container has left in the run directory."""
        faulthandler.cancel_dump_traceback_later()
        self._watch.close()
        self._selector.close()
        self._clear()

    def _step(self) -> None:
        if self._executor is not None:
            self._look_at_executor()
        record = self._seen
        if record is not None and self._attempt and record.attempts > self._attempt and not self._superseded:
            self._superseded = True
            _log.warning("attempt %d runs on %s, so this one ends", record.attempts, record.host)
        rests = self._superseded and self._executor is None and record is not None
        step = Step.REST if rests else next_step(record, self._running)
        if step is Step.LEAVE:
            self._left = True
            _log.info("the job of container %d was killed, so its launcher ends", self._launch.container_id)
            return
        if step is Step.START and record is not None:
            self._start_when_due(record)
        elif step is Step.END:
            self._end_executor()
        elif step is Step.REMOVE:
            self._change(removed)
        self._wait(self._next_at_s() - monotonic_s())

    @property
    def _running(self) -> int:
        return self._attempt if self._executor is not None else 0

    def _start_when_due(self, record: ContainerRecord) -> None:
        if self._start_at_s is None:
            self._start_at_s = monotonic_s() + record.wait_s
        if monotonic_s() < self._start_at_s:
            return
        self._start_at_s = None
        before = 0

        def claim(found: ContainerRecord) -> ContainerRecord:
            nonlocal before
            before = found.attempts
            return claimed(found, os.uname().nodename)

        mine = self._change(claim)
        if mine is None or mine.attempts == before:
            return  # the job was killed, or the record has changed meanwhile
        self._attempt = mine.attempts
        self._started_at_s = monotonic_s()
        _log.info("container %d starts, attempt %d", mine.container_id, mine.attempts)
        try:
            self._executor = self._start(mine.attempts)
        except (OSError, ValueError, HeronError) as error:
            reason = f"it cannot be started on {os.uname().nodename}: {error}"
            self._record_end(ExecutorEnd(reason, own=False, ran_s=0.0))

    def _start(self, attempt: int) -> ExecutorProcess:
        own_run_dir(self._run_dir)
        spec = spec_here(self._launch.spec, attempt, self._logs)
        spec["package_uri"] = spec["package_uri"] or stored_package_uri(self._statemgr, self._launch.topology)
        spec_file = self._run_dir / f"c{self._launch.container_id}.json"
        write_private(spec_file, json.dumps(spec).encode())
        command = self._launch.executor or (sys.executable, "-P", "-m", "heron.executor.main")
        executor = ExecutorProcess(command, spec_file, spec)
        if self._output is None:
            self._output = ContainerOutput(self._logs, _STDOUT)
        return executor

    def _end_executor(self) -> None:
        if self._executor is not None and self._kill_at_s == float("inf"):
            self._executor.terminate()
            self._kill_at_s = monotonic_s() + self._launch.grace_s

    def _look_at_executor(self) -> None:
        executor = self._executor
        if executor is None:
            return
        if monotonic_s() >= self._kill_at_s:
            executor.kill()
        error = executor.ended()
        if error is None:
            return
        told = self._kill_at_s != float("inf")
        self._executor, self._kill_at_s = None, float("inf")
        own = executor.at_fault and not told
        if error and self._signals.stop_requested:
            error = _BY_CLUSTER
        self._record_end(ExecutorEnd(error, own, monotonic_s() - self._started_at_s))

    def _record_end(self, end: ExecutorEnd) -> None:
        _log.info("attempt %d has ended: %s", self._attempt, end.error or "exit code 0")
        attempt = self._attempt
        if self._output is not None:
            self._output.close()
            self._output = None
        self._clear()
        while True:
            try:
                self._change(lambda each: ended(each, attempt, end, self._limits))
            except HeronError as error:
                _log.warning("the end of attempt %d cannot be recorded: %s", attempt, error)
                self._wait(_RETRY_S)
                if not self._signals.stop_requested:
                    continue
            return

    def _change(self, changed: Callable[[ContainerRecord], ContainerRecord]) -> ContainerRecord | None:
        self._seen = self._records.change(self._launch.container_id, changed)
        return self._seen

    def _changed(self, record: ContainerRecord | None) -> None:
        """Called by the watch, from its thread."""
        self._seen = record
        with suppress(OSError):
            os.write(self._wake, b"\0")

    def _next_at_s(self) -> float:
        due_s = self._start_at_s if self._start_at_s is not None else float("inf")
        return min(due_s, self._kill_at_s)

    def _wait(self, limit_s: float) -> None:
        """Wait for a signal, a change of the record or the time limit; reap orphans, whose parent is process 1."""
        self._restart_watchdog()
        self._selector.select(max(0.0, min(limit_s, self._hang_s / 4)))
        self._restart_watchdog()
        self._signals.read()
        with suppress(BlockingIOError):
            os.read(self._waking, 4096)
        if os.getpid() == 1:
            self._reap_orphans()

    def _restart_watchdog(self) -> None:
        """Its thread needs no interpreter lock, so it also ends a launcher that hangs in native code."""
        faulthandler.dump_traceback_later(self._hang_s, exit=True)

    def _reap_orphans(self) -> None:
        mine = self._executor.identity.pid if self._executor is not None else 0
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid == mine:
                    return  # `_look_at_executor` reaps it
                os.waitpid(found.si_pid, os.WNOHANG)

    def _clear(self) -> None:
        """Remove the files of this container, and the run directory if no other container uses it.

        A later attempt on this machine has the same files, and removes them at its own end.
        """
        seen = self._seen
        if seen is not None and seen.attempts > self._attempt and seen.host == os.uname().nodename:
            return
        for left in self._run_dir.glob(f"c{self._launch.container_id}*"):
            if left.name.partition(".")[0] != f"c{self._launch.container_id}":
                continue
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        with suppress(OSError):
            self._run_dir.rmdir()


def spec_here(spec: dict[str, object], attempt: int, logs: Path) -> dict[str, object]:
    """Return the spec for an attempt in this container: its logs are in the run directory, its address is ours."""
    there, here = json.dumps(spec["log_dir"])[1:-1], json.dumps(str(logs))[1:-1]
    sinks = json.loads(json.dumps(spec["sinks"]).replace(there, here)) if there else spec["sinks"]
    settings = dict(msgspec.convert(spec["settings"], dict[str, object]))
    address = os.environ.get(HOST_ADDRESS, "")
    if address and settings.get(_LISTEN, _LOOPBACK) == _LOOPBACK:
        settings[_LISTEN] = address
    return {**spec, "attempt": attempt, "log_dir": str(logs), "sinks": sinks, "settings": settings}


def _wait_for_file(path: Path, signals: Signals) -> LaunchFile | None:
    """Return the launch file; wait while the place has no container. None when a signal ends the wait."""
    said = False
    with selectors.DefaultSelector() as selector:
        selector.register(signals.fileno(), selectors.EVENT_READ)
        while not signals.stop_requested:
            if (launch := read_launch_file(path)) is not None:
                return launch
            if not said:
                said = True
                _log.info("this place has no container: %s does not exist", path)
            selector.select(_RETRY_S)
            signals.read()
    return None


def begin_planned(launch: LaunchFile, statemgr: StateManager) -> None:
    """Begin the run that a dry run has planned, if nobody has; the records come last, without which nothing starts."""
    records = ContainerRecords(statemgr, launch.topology_id)
    if launch.planned is not None and records.get(0) is None:
        begin_run(statemgr, launch.uploader, launch.planned)
        records.add(launch.topology, launch.planned.containers)


def _open_state(launch: LaunchFile, signals: Signals) -> Launcher | None:
    while not signals.stop_requested:
        statemgr: StateManager | None = None
        try:
            statemgr = open_statemgr(msgspec.convert(launch.spec["statemgr"], DriverRef))
            begin_planned(launch, statemgr)
            return Launcher(launch, statemgr, signals)
        except HeronError as error:
            _log.warning("container %d waits for the state manager: %s", launch.container_id, error)
            if statemgr is not None:
                statemgr.close()
        with selectors.DefaultSelector() as selector:
            selector.register(signals.fileno(), selectors.EVENT_READ)
            selector.select(_RETRY_S)
        signals.read()
    return None


def _main() -> int:
    signals = Signals(_SIGNALS)
    path = Path(sys.argv[1])
    launch = _wait_for_file(path, signals)
    if launch is not None:
        bound: dict[str, str | int] = {"topology": launch.topology, "container": launch.container_id}
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines(launch.secrets, **bound, process="launcher"))
        launcher = _open_state(launch, signals)
        if launcher is not None:
            launcher.run()
            launcher.close()
    return EXIT_TERMINATED if signals.stop_requested else 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    logging.getLogger().handlers[0].setFormatter(JsonLines((), process="launcher"))
    sys.exit(_main())
