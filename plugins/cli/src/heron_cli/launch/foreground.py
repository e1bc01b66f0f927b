"""One topology in the foreground: submitted, watched until it ends, and removed again whatever happens."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import load_object
from heron.kernel.observers import installed_observers
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.client.cleanup import end_run, logs_in_use
from heron_cli.client.environment import Environment, open_environment
from heron_cli.client.lifecycle_hooks import announcing
from heron_cli.commands.overrides import engine_settings, parse_overrides
from heron_cli.launch.folders import name_log_dir, name_run_dir, prune_logs
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.loaded import LoadingTopology
from heron_cli.launch.outcome import Outcome
from heron_cli.launch.prepare import Prepared, find_profile, prepare
from heron_cli.launch.report import RunReport, component_reports, write_report
from heron_cli.launch.run_request import RunRequest
from heron_cli.launch.simulated import run_simulated
from heron_cli.launch.submitter import Submission, new_topology_id, submit
from heron_cli.view.progress import QuietProgress
from heron_cli.view.view import spoken_count

__all__ = ["run_in_foreground"]

_WatchRun = Callable[[Environment, ExecutionState, TopologyDefinition, Interrupts, float | None], Outcome]
"""`heron_cli.launch.wait_for_end.watch_run`, loaded when the containers are starting: it brings ZeroMQ and protobuf."""

_EXIT_CODES = {"finished": 0, "failed": 1, "killed": 1}
_EXIT_INTERRUPTED = 130


def run_in_foreground(request: RunRequest, loading: LoadingTopology, interrupts: Interrupts) -> int:
    """Runs the topology that is being loaded, and returns the command's exit code.

    Raises:
        HeronError: before anything is started; nothing is changed then.
        KeyboardInterrupt: likewise, when it was interrupted.
    """
    overrides = parse_overrides(request.settings)
    profile = find_profile(request.profile, request.config_path, overrides)
    prepared = prepare(loading.result(interrupts.requested), profile, overrides)
    if request.simulate:
        interrupts.give_back()
        return run_simulated(request, prepared)
    entries = installed_observers()
    with ExitStack() as stack:
        observers = stack.enter_context(announcing(entries))
        environment = open_environment(profile)
        stack.callback(environment.statemgr.close)
        run = _start(environment, prepared, entries)
        try:
            observers.notify("heron_topology_submitted", topology=run.topology, topology_id=run.topology_id)
            watch_run = cast("_WatchRun", load_object("heron_cli.launch.wait_for_end:watch_run"))
            deadline_s = None if request.timeout_s is None else request.started_s + request.timeout_s
            outcome = watch_run(environment, run, prepared.loaded.definition, interrupts, deadline_s)
        finally:
            end_run(environment, run)
        observers.notify(
            "heron_topology_ended", topology=run.topology, topology_id=run.topology_id, state=outcome.state
        )
    return _conclude(request, prepared, run, outcome)


def _start(environment: Environment, prepared: Prepared, hooks: tuple[str, ...]) -> ExecutionState:
    profile = environment.profile
    definition = prepared.loaded.definition
    settings = engine_settings(profile.engine, definition, on_failure="stop")
    topology_id = new_topology_id(definition.name)
    submission = Submission(
        prepared.loaded,
        prepared.plan,
        topology_id,
        name_run_dir(profile.run_dir),
        name_log_dir(profile.log_dir, topology_id),
        settings,
        hooks,
        prepared.serializers,
        attached=True,
    )
    run = submit(environment, submission, QuietProgress())
    prune_logs(Path(profile.log_dir).absolute(), logs_in_use(environment.statemgr))
    return run


def _conclude(request: RunRequest, prepared: Prepared, run: ExecutionState, outcome: Outcome) -> int:
    elapsed_s = outcome.ended_s - request.started_s
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
    failed = [f"{spoken_count(each.failed)} in {each.name}" for each in counts.values() if each.failed]
    failures = f", with failed tuples: {', '.join(failed)}" if failed else ""
    spoken = f"{run.topology} {outcome.state} after {elapsed_s:.1f} s{failures}"
    if outcome.state == "finished":
        print(f"{spoken}; logs: {run.log_dir}" if failed else spoken, file=sys.stderr)
    else:
        why = f": {outcome.reason}" if outcome.state == "killed" and outcome.reason else ""  # a failure was told above
        print(f"heron: {spoken}{why}; logs: {run.log_dir}", file=sys.stderr)
    return _EXIT_INTERRUPTED if outcome.interrupted else _EXIT_CODES[outcome.state]
