"""Follows a run from outside until it ends, is interrupted, or its time is up, and shows what its tasks print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from heron.api.definition import TopologyDefinition
from heron.clock import monotonic_s
from heron.driver_kit.followed_log import FollowedLog, lock_folder
from heron.driver_kit.loading import load_object
from heron.errors import HeronError
from heron.ipc.documents.status import TopologyStatus
from heron.ipc.query import TManagerClient
from heron.spi.scheduler import ContainerStatus, JobStatus, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron_cli.interrupts import Interrupts
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import read_report
from heron_cli.topologies.running.tmanager_client import open_tmanager_client
from heron_cli.topologies.running.topology_end import ENDED
from heron_cli.view.live.run_view import GuardedView, PlainView, View

if TYPE_CHECKING:
    from heron_cli.foreground.reloading import Reloaded

__all__ = ["Outcome", "Outputs", "RunMonitor", "StatusPoller", "watch_run"]

_POLL_S = 0.1  # a person sees no delay
_MORE_S = 0.02  # the same while tasks print: with a small limit of their files they wait for this process
_STATUS_S = 0.25
_JOB_S = 1.0  # the period of questions to the scheduler while the topology manager does not answer
_LEAVE_S = 6.0  # an executor stops its children and ends within 5 s
_ATTEMPTS = 5  # a container that has not begun after 5 starts (3 s of back-off) lacks something: space, a package
_ANSWER_S = 0.5  # a topology manager answers in milliseconds, unless it is restarting
_CHUNK_BYTES = 1 << 20
_LOOK_BYTES = 8 << 20  # of one task, before the next task has its turn
_LINE_BYTES = 1 << 16  # a longer line without an end is shown in pieces of this size


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its state, the reason, the last status, and the time in monotonic seconds."""

    state: str
    reason: str = ""
    interrupted: bool = False
    status: TopologyStatus | None = None
    ended_s: float = 0.0


def watch_run(
    environment: Environment,
    run: ExecutionState,
    definition: TopologyDefinition,
    interrupts: Interrupts,
    deadline_s: float | None,
    reloaded: Callable[[], Sequence[Reloaded]] = tuple,
) -> Outcome:
    """Follow a run and show it on stderr, a terminal or a pipe; `deadline_s` is monotonic.

    `reloaded` returns what there is to say about files that were saved.
    """
    view = GuardedView(_view())
    try:
        parallelism = {each.name: each.parallelism for each in definition.components}
        with closing(Outputs(Path(run.log_dir), parallelism)) as outputs:
            return RunMonitor(environment, run, view, outputs, reloaded).wait_for_end(interrupts, deadline_s)
    finally:
        view.close()


class RunMonitor:
    """Follows one run."""

    def __init__(
        self,
        environment: Environment,
        run: ExecutionState,
        view: GuardedView,
        outputs: Outputs,
        reloaded: Callable[[], Sequence[Reloaded]] = tuple,
    ) -> None:
        self._reloaded = reloaded
        self._environment = environment
        self._run = run
        self._view = view
        self._outputs = outputs
        self._poller = StatusPoller(environment.statemgr, run)
        self._status: TopologyStatus | None = None
        self._shown: set[str] = set()

    def wait_for_end(self, interrupts: Interrupts, deadline_s: float | None) -> Outcome:
        """Follow the run to its end; every line printed so far is shown then, and the job may still run."""
        try:
            outcome = replace(self._until_end(interrupts, deadline_s), ended_s=monotonic_s())
            if outcome.state == "killed":
                self._stop()
            else:
                self._wait_for_processes(interrupts)
            self._show_output(final=True)
            if report := self._poller.report():
                self._show_status(report)  # its counts include those of the last moments
            self._show_error(outcome.reason if outcome.state == "failed" else "")
            if self._status:
                self._view.show(replace(self._status, state=outcome.state))
            return replace(outcome, status=self._status)
        finally:
            self._poller.close()

    def _until_end(self, interrupts: Interrupts, deadline_s: float | None) -> Outcome:
        look_at_s = job_at_s = 0.0
        while True:
            now_s = monotonic_s()
            if now_s >= look_at_s:
                look_at_s = now_s + _STATUS_S
                self._poll()
            if self._status and self._status.state in ENDED:
                return Outcome(self._status.state, self._status.error)
            if interrupts.requested():
                return Outcome("killed", "interrupted", interrupted=True)
            if self._view.unread:
                return Outcome("killed", "nobody reads its output any more")
            if deadline_s is not None and now_s >= deadline_s:
                return Outcome("killed", "its --timeout is up")
            if now_s >= job_at_s:
                job_at_s = now_s + _JOB_S
                if lost := self._lost_run():
                    return lost
            interrupts.wait(_MORE_S if self._show_output() else _POLL_S)

    def _poll(self) -> None:
        if status := self._poller.poll():
            self._show_status(status)
        for each in self._reloaded():
            known = not each.reason or any(error in each.reason for error in self._shown)
            self._view.note(each.text if known else f"{each.text}: {each.reason}")

    def _show_status(self, status: TopologyStatus) -> None:
        self._status = status
        self._view.show(status)
        for error in status.errors:
            self._show_error(error)
        for task in status.tasks:
            self._show_error(task.last_error, f"{task.component}/{task.task_id}: ")

    def _show_error(self, error: str, whose: str = "") -> None:
        if error and error not in self._shown:
            self._shown.add(error)
            self._view.note(f"heron: error: {whose}{error}")

    def _lost_run(self) -> Outcome | None:
        """Return the outcome when the job has ended without a report of its topology manager."""
        try:
            job = self._job()
        except HeronError:
            return None  # the caller asks again
        if job.state is SchedulerState.RUNNING:
            return self._never_begun(job.containers)
        if report := self._poller.report():
            self._show_status(report)
            return Outcome(report.state, report.error)
        reasons = [f"container {each.container_id}: {each.last_error}" for each in job.containers if each.last_error]
        return Outcome("failed", "; ".join(reasons) or "its containers ended without a report")

    def _job(self) -> JobStatus:
        return self._environment.scheduler.status(self._run.topology).of(self._run.topology_id)

    def _never_begun(self, containers: Sequence[ContainerStatus]) -> Outcome | None:
        """Show why containers were started again; return the outcome when one of them never begins."""
        for each in containers:
            if each.last_error:
                error = f"container {each.container_id}: {each.last_error}"
                self._show_error(error)
                if not each.running and each.attempts >= _ATTEMPTS and not (self._status and self._status.plan_version):
                    return Outcome("failed", f"{error}; given up after {each.attempts} attempts")
        return None

    def _wait_for_processes(self, interrupts: Interrupts) -> None:
        """Wait for the processes of a topology that ended to end by themselves, with their last output."""
        deadline_s = monotonic_s() + _LEAVE_S
        while monotonic_s() < deadline_s and not interrupts.requested():
            self._show_output()
            try:
                if self._job().state is not SchedulerState.RUNNING:
                    return
            except HeronError:
                return
            interrupts.wait(_POLL_S / 2)

    def _stop(self) -> None:
        """End the job, so that its last output can be shown."""
        try:
            self._environment.scheduler.kill(self._run.topology, self._run.topology_id)
        except HeronError as error:
            self._view.note(f"heron: error: {error}")

    def _show_output(self, *, final: bool = False) -> bool:
        """Show new output; return whether there was some."""
        lines = list(self._outputs.lines(final=final))
        if lines:
            self._view.lines(lines)
        return bool(lines)


def _view() -> View:
    if sys.stderr.isatty():
        make = cast("Callable[[], View]", load_object("heron_cli.view.live.live_view:LiveView"))
        return make()  # loaded by name because rich costs 50 ms
    return PlainView()


class StatusPoller:
    """Polls the status of one run with the read-only key.

    It never raises because the topology manager or the state manager is away.
    """

    def __init__(self, statemgr: StateManager, run: ExecutionState) -> None:
        self._statemgr = statemgr
        self._run = run
        self._server = ("", "")
        self._client: TManagerClient | None = None

    def poll(self) -> TopologyStatus | None:
        """Return the current status, or the last report of the topology manager, or None when there is neither."""
        try:
            return self._ask() or self.report()
        except HeronError:
            self.close()
            return self.report()

    def report(self) -> TopologyStatus | None:
        """Return the last status, which a topology manager writes before it ends; None before that."""
        try:
            report = read_report(self._statemgr, self._run.topology)
            return self._ours(report.status) if report else None
        except HeronError:
            return None

    def close(self) -> None:
        """Close the socket; idempotent."""
        if self._client:
            self._client.close()
        self._client = None

    def _ask(self) -> TopologyStatus | None:
        node = self._statemgr.get(NodeKind.TMANAGER_LOCATION, self._run.topology)
        if node is None:
            self.close()
            return None
        location = decode_tmanager_location(node.value, self._run.topology)
        server = (location.endpoint, location.server_key)
        if self._client is None or server != self._server:
            self.close()
            keys = self._statemgr.get(NodeKind.KEYS, self._run.topology)
            if keys is None:
                return None
            self._client = open_tmanager_client(
                location.endpoint, keys.value, self._run.topology, control=False, server_key=location.server_key
            )
            self._server = server
        return self._ours(self._client.status(_ANSWER_S))

    def _ours(self, status: TopologyStatus) -> TopologyStatus | None:
        return status if status.topology_id == self._run.topology_id else None


class Outputs:
    """The output of the tasks, which is one file per task in the log directory, as complete lines.

    Executors remove no part of these files that was not read here; decision 063.
    """

    def __init__(self, log_dir: Path, parallelism: Mapping[str, int]) -> None:
        """The log directory exists.

        Raises:
            OSError: when it does not.
        """
        self._log_dir = log_dir
        self._lock = lock_folder(log_dir)
        self._parallelism = parallelism
        self._files: dict[Path, _File] = {}

    def lines(self, *, final: bool = False) -> Iterator[str]:
        """Return new lines; with `final`, all that there are, and the last line of each task that has no end."""
        for path in self._log_dir.glob("*.out"):
            component, _, task = path.stem.rpartition("-")
            if component in self._parallelism and path not in self._files:  # else a process of the engine
                several = self._parallelism[component] > 1
                self._files[path] = _File(FollowedLog(path, hold=True), f"{component}/{task} | " if several else "")
        for path in sorted(self._files):
            yield from self._files[path].lines(final=final)

    def close(self) -> None:
        """Close the files; idempotent."""
        for file in self._files.values():
            file.log.close()
        self._files.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@dataclass(slots=True)
class _File:
    log: FollowedLog
    prefix: str
    rest: bytes = b""
    gaps: int = field(default=0, init=False)

    def lines(self, *, final: bool) -> Iterator[str]:
        left = _LOOK_BYTES
        while (left > 0 or final) and (chunk := self.log.read(_CHUNK_BYTES)):
            left -= len(chunk)
            if self.log.gaps > self.gaps:
                self.gaps = self.log.gaps
                yield from self._end()
                yield f"heron: lines of {self.log.path.stem} are left out: they came faster than they were shown"
            *whole, self.rest = (self.rest + chunk).split(b"\n")
            yield from (self.prefix + _text(line) for line in whole)
            if len(self.rest) > _LINE_BYTES:
                yield from self._end()
        if final:
            yield from self._end()

    def _end(self) -> Iterator[str]:
        if self.rest:
            rest, self.rest = self.rest, b""
            yield self.prefix + _text(rest)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")
