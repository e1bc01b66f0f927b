"""``heron run``: submits a topology, follows it until it ends, and removes it in every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

from heron.driver_kit.loading import load_object
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.catalog.other_plugins import observer_entries
from heron_cli.foreground.run_monitor import Outcome, watch_run
from heron_cli.foreground.run_page import RunPage
from heron_cli.foreground.run_report import RunReport, RunRequest, component_reports, write_report
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.prepare import Prepared, prepare
from heron_cli.launch.start_from import start_from
from heron_cli.launch.submission import Terms, new_submission, start_topology
from heron_cli.topologies.environment import Environment, find_profile, lifecycle_hooks, open_environment
from heron_cli.topologies.runs.cleanup import end_run, logs_in_use
from heron_cli.topologies.runs.run_folders import prune_logs
from heron_cli.view.live.quiet_progress import QuietProgress
from heron_cli.view.text import echo, format_count

if TYPE_CHECKING:
    from heron_cli.foreground.reloading import Reloaded, Reloading

__all__ = ["run_in_foreground"]

_RELOADING = "heron_cli.foreground.reloading:Reloading"
_EXIT_CODES = {"finished": 0, "failed": 1, "killed": 1}
_EXIT_INTERRUPTED = 130


def run_in_foreground(request: RunRequest, loading: LoadingTopology, interrupts: Interrupts) -> int:
    """Run the topology that is being loaded; return the command's exit code.

    Raises:
        HeronError: before anything is started; then nothing is changed.
        KeyboardInterrupt: likewise, when the command was interrupted.
    """
    choice = request.choice
    profile = find_profile(choice)
    loading.choose(profile.choices)
    loaded = loading.result(interrupts.requested)
    prepared = prepare(loaded, profile, choice.overrides, without=choice.without)
    prepared = start_from(prepared, profile, request.from_checkpoint)
    entries = observer_entries(choice.without)
    serving = RunPage.serving(choice) if request.ui else nullcontext()
    with lifecycle_hooks(entries) as observers, serving as page:
        environment = open_environment(profile)
        try:
            run = _start(environment, prepared, entries)
            try:
                observers.notify("heron_topology_submitted", topology=run.topology, topology_id=run.topology_id)
                deadline_s = None if request.timeout_s is None else request.started_s + request.timeout_s
                if page is not None:
                    echo(page.announcement(run.topology), err=True)
                definition = prepared.loaded.definition
                with _reloading(request, prepared) as reloaded:
                    outcome = watch_run(environment, run, definition, interrupts, deadline_s, reloaded)
            finally:
                end_run(environment, run)
        finally:
            environment.close()
        observers.notify(
            "heron_topology_ended", topology=run.topology, topology_id=run.topology_id, state=outcome.state
        )
    return _conclude(request, prepared, run, outcome)


@contextmanager
def _reloading(request: RunRequest, prepared: Prepared) -> Iterator[Callable[[], Sequence[Reloaded]]]:
    """Follow the files of the program in this block, if the request says so; yield what has to be said."""
    if not request.reload:
        yield tuple
        return
    loaded = prepared.loaded
    make = cast("type[Reloading]", load_object(_RELOADING))  # loaded by name: few runs need it
    with make(request.choice, loaded.definition.name, request.target, loaded) as reloading:
        yield reloading.said


def _start(environment: Environment, prepared: Prepared, entries: tuple[str, ...]) -> ExecutionState:
    profile = environment.profile
    submission = new_submission(profile, prepared, entries, Terms(attached=True))
    run = start_topology(environment, submission, QuietProgress())
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
    failed = [f"{format_count(each.failed)} in {each.name}" for each in counts.values() if each.failed]
    failures = f", with failed tuples: {', '.join(failed)}" if failed else ""
    shed = [f"{format_count(each.shed)} in {each.name}" for each in counts.values() if each.shed]
    failures += f", with shed tuples: {', '.join(shed)}" if shed else ""
    result = f"{run.topology} {outcome.state} after {elapsed_s:.1f} s{failures}"
    if outcome.state == "finished":
        echo(f"{result}; logs: {run.log_dir}" if failed else result, err=True)
    else:
        why = f": {outcome.reason}" if outcome.state == "killed" and outcome.reason else ""  # a failure was shown above
        echo(f"heron: {result}{why}; logs: {run.log_dir}", err=True)
    return _EXIT_INTERRUPTED if outcome.interrupted else _EXIT_CODES[outcome.state]
