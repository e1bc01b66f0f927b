"""One topology in the foreground: submitted, watched until it ends, and removed again whatever happens."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from heron.clock import monotonic_s
from heron.kernel.loading import load_object
from heron.kernel.observers import Observers, installed_observers
from heron.kernel.profiles import Profile
from heron.submit.environment import Environment, open_environment
from heron.submit.execution_state import ExecutionState
from heron.submit.folders import make_log_dir, make_run_dir
from heron.submit.interrupts import Interrupts
from heron.submit.leftovers import end_run
from heron.submit.loaded import LoadingTopology
from heron.submit.outputs import Outputs
from heron.submit.overrides import engine_settings
from heron.submit.prepare import Prepared, find_profile, prepare
from heron.submit.report import RunReport, component_reports, write_report
from heron.submit.run_request import RunRequest
from heron.submit.simulated import run_simulated
from heron.submit.submitter import Submission, new_topology_id, submit
from heron.submit.view import PlainView, View
from heron.submit.vigil import Outcome, Vigil

__all__ = ["run_in_foreground"]

_EXIT_CODES = {"finished": 0, "failed": 1, "killed": 1}
_EXIT_INTERRUPTED = 130


def run_in_foreground(request: RunRequest, loading: LoadingTopology, interrupts: Interrupts) -> int:
    """Runs the topology that is being loaded, and returns the command's exit code.

    Raises:
        HeronError: before anything is started; nothing is changed then.
        KeyboardInterrupt: likewise, when it was interrupted.
    """
    profile = find_profile(request.profile, request.config_path, request.overrides)
    prepared = prepare(loading.result(interrupts.requested), profile, request.overrides)
    if request.simulate:
        return run_simulated(request, prepared.loaded)
    observers = Observers.load(installed_observers())
    with ExitStack() as stack:
        environment = open_environment(profile)
        stack.callback(environment.statemgr.close)
        started = _start(request, environment, prepared, observers.names())
        try:
            observers.notify("heron_topology_submitted", topology=started.name, topology_id=started.run.topology_id)
            outcome = _watch(request, environment, prepared, started, interrupts)
        finally:
            end_run(environment, started.run)
        observers.notify(
            "heron_topology_ended", topology=started.name, topology_id=started.run.topology_id, state=outcome.state
        )
    return _conclude(request, prepared, started.run, outcome)


@dataclass(frozen=True, slots=True)
class _Started:
    name: str
    run: ExecutionState
    log_dir: Path


def _start(request: RunRequest, environment: Environment, prepared: Prepared, hooks: tuple[str, ...]) -> _Started:
    profile: Profile = environment.profile
    definition = prepared.loaded.definition
    settings = engine_settings(profile.engine, definition, on_failure="stop")
    topology_id = new_topology_id(definition.name)
    with ExitStack() as undo:
        run_dir = make_run_dir(profile.run_dir)
        undo.callback(shutil.rmtree, run_dir, ignore_errors=True)
        log_dir = make_log_dir(profile.log_dir, topology_id)
        undo.callback(shutil.rmtree, log_dir, ignore_errors=True)
        submission = Submission(
            prepared.loaded, prepared.plan, topology_id, run_dir, log_dir, settings, hooks, attached=True
        )
        run = submit(environment, submission, lambda text: print(f"heron: note: {text}", file=sys.stderr))
        undo.pop_all()
    return _Started(definition.name, run, log_dir)


def _watch(
    request: RunRequest, environment: Environment, prepared: Prepared, started: _Started, interrupts: Interrupts
) -> Outcome:
    parallelism = {each.name: each.parallelism for each in prepared.loaded.definition.components}
    view = _view()
    try:
        vigil = Vigil(environment, started.run, view, Outputs(started.log_dir, parallelism))
        deadline_s = None if request.timeout_s is None else request.started_s + request.timeout_s
        return vigil.keep(interrupts, deadline_s)
    finally:
        view.close()


def _view() -> View:
    if sys.stderr.isatty():
        make = load_object("heron.submit.live_view:LiveView")  # rich costs 50 ms, for a terminal only
        if callable(make):
            view: View = make()
            return view
    return PlainView()


def _conclude(request: RunRequest, prepared: Prepared, run: ExecutionState, outcome: Outcome) -> int:
    elapsed_s = monotonic_s() - request.started_s
    status = outcome.status
    first_s = status.first_tuple_at_s - request.started_at_s if status and status.first_tuple_at_s else None
    counts = {each.name: each for each in status.components} if status else {}
    report = RunReport(
        run.topology,
        run.topology_id,
        outcome.state,
        elapsed_s,
        first_s,
        component_reports(prepared.loaded.definition, counts),
    )
    if request.report:
        write_report(report, request.report)
    spoken = f"{run.topology} {outcome.state} after {elapsed_s:.1f} s"
    if outcome.state == "finished":
        print(spoken, file=sys.stderr)
    else:
        reason = f": {outcome.reason}" if outcome.reason else ""
        print(f"heron: {spoken}{reason}; logs: {run.log_dir}", file=sys.stderr)
    return _EXIT_INTERRUPTED if outcome.interrupted else _EXIT_CODES[outcome.state]
