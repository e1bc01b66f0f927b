"""Watches a run until it ends, is interrupted, or its time is up, and passes on what its tasks print meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from heron.api.definition import TopologyDefinition
from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.errors import HeronError
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, JobStatus, SchedulerState
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.client.environment import Environment
from heron_cli.client.watcher import ENDED, Watcher
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.outcome import Outcome
from heron_cli.launch.outputs import Outputs
from heron_cli.view.guarded_view import GuardedView
from heron_cli.view.view import PlainView, View

__all__ = ["Vigil", "watch_run"]

_LOOK_S = 0.1  # a person sees no delay, and two or three processes of work a second are not worth saving
_STATUS_S = 0.25
_JOB_S = 1.0  # how often the scheduler is asked, while the topology manager says nothing
_LEAVE_S = 6.0  # an executor stops its children and leaves within 5 s
_ATTEMPTS = 5  # a container that never once began in so many (3 s of back-off) lacks something: space, a package


def watch_run(
    environment: Environment,
    run: ExecutionState,
    definition: TopologyDefinition,
    interrupts: Interrupts,
    deadline_s: float | None,
) -> Outcome:
    """Watches a run on the terminal or pipe that stderr is; `deadline_s` is monotonic."""
    view = GuardedView(_view())
    try:
        outputs = Outputs(Path(run.log_dir), {each.name: each.parallelism for each in definition.components})
        return Vigil(environment, run, view, outputs).keep(interrupts, deadline_s)
    finally:
        view.close()


class Vigil:
    """One watch over one run."""

    def __init__(self, environment: Environment, run: ExecutionState, view: GuardedView, outputs: Outputs) -> None:
        self._environment = environment
        self._run = run
        self._view = view
        self._outputs = outputs
        self._watcher = Watcher(environment.statemgr, run)
        self._status: TopologyStatus | None = None
        self._said: set[str] = set()

    def keep(self, interrupts: Interrupts, deadline_s: float | None) -> Outcome:
        """Watches; when this returns every line that was printed so far is shown, and the job may still run."""
        try:
            outcome = replace(self._until_end(interrupts, deadline_s), ended_s=monotonic_s())
            if outcome.state == "killed":
                self._stop()
            else:
                self._let_leave(interrupts)
            self._pump(final=True)
            if report := self._watcher.report():
                self._take(report)  # its counts include what was counted on the way out
            self._say(outcome.reason if outcome.state == "failed" else "")
            if self._status:
                self._view.show(replace(self._status, state=outcome.state))
            return replace(outcome, status=self._status)
        finally:
            self._watcher.close()

    def _until_end(self, interrupts: Interrupts, deadline_s: float | None) -> Outcome:
        look_at_s = job_at_s = 0.0
        while True:
            now_s = monotonic_s()
            if now_s >= look_at_s:
                look_at_s = now_s + _STATUS_S
                self._look()
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
                if lost := self._lost():
                    return lost
            self._pump()
            interrupts.wait(_LOOK_S)

    def _look(self) -> None:
        if status := self._watcher.look():
            self._take(status)

    def _take(self, status: TopologyStatus) -> None:
        self._status = status
        self._view.show(status)
        for error in status.errors:
            self._say(error)
        for task in status.tasks:
            self._say(task.last_error, f"{task.component}/{task.task_id}: ")

    def _say(self, error: str, whose: str = "") -> None:
        if error and error not in self._said:
            self._said.add(error)
            self._view.note(f"heron: error: {whose}{error}")

    def _lost(self) -> Outcome | None:
        """The outcome when the job has ended without its topology manager having said so."""
        try:
            job = self._job()
        except HeronError:
            return None  # asked again in a moment
        if job.state is SchedulerState.RUNNING:
            return self._never_begun(job.containers)
        if report := self._watcher.report():
            self._take(report)
            return Outcome(report.state, report.error)
        reasons = [f"container {each.container_id}: {each.last_error}" for each in job.containers if each.last_error]
        return Outcome("failed", "; ".join(reasons) or "its containers ended without a report")

    def _job(self) -> JobStatus:
        return self._environment.scheduler.status(self._run.topology).of(self._run.topology_id)

    def _never_begun(self, containers: Sequence[ContainerStatus]) -> Outcome | None:
        """Shows why containers had to be started again; the outcome when one of them never begins."""
        for each in containers:
            if each.last_error:
                error = f"container {each.container_id}: {each.last_error}"
                self._say(error)
                if not each.running and each.attempts >= _ATTEMPTS and not (self._status and self._status.plan_version):
                    return Outcome("failed", f"{error}; given up after {each.attempts} attempts")
        return None

    def _let_leave(self, interrupts: Interrupts) -> None:
        """Waits for the processes of a topology that ended to leave by themselves, with their last words."""
        deadline_s = monotonic_s() + _LEAVE_S
        while monotonic_s() < deadline_s and not interrupts.requested():
            self._pump()
            try:
                if self._job().state is not SchedulerState.RUNNING:
                    return
            except HeronError:
                return
            interrupts.wait(_LOOK_S / 2)

    def _stop(self) -> None:
        """Ends the job, so that its last words can be shown."""
        try:
            self._environment.scheduler.kill(self._run.topology, self._run.topology_id)
        except HeronError as error:
            self._view.note(f"heron: error: {error}")

    def _pump(self, *, final: bool = False) -> None:
        lines = list(self._outputs.lines(final=final))
        if lines:
            self._view.lines(lines)


def _view() -> View:
    if sys.stderr.isatty():
        make = cast("Callable[[], View]", load_object("heron_cli.view.live_view:LiveView"))
        return make()  # loaded by name because rich costs 50 ms
    return PlainView()
