"""One topology submitted for good: it runs on when the command and its terminal are gone."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from heron.driver_kit.loading import open_driver
from heron.errors import HeronError
from heron.kernel.observers import installed_observers
from heron.spi.packing import Packing
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.client.cleanup import logs_in_use, settle
from heron_cli.client.discovery import topologies
from heron_cli.client.environment import Environment, open_environment
from heron_cli.client.lifecycle_hooks import announcing
from heron_cli.commands.overrides import engine_settings, parse_overrides
from heron_cli.launch.folders import name_log_dir, name_run_dir, prune_logs
from heron_cli.launch.interrupts import Interrupts
from heron_cli.launch.loaded import LoadingTopology
from heron_cli.launch.prepare import Prepared, find_profile, prepare
from heron_cli.launch.submit_request import SubmitRequest
from heron_cli.launch.submitter import STEPS, Submission, new_topology_id, submit
from heron_cli.profiles import Profile
from heron_cli.view.json_text import print_json
from heron_cli.view.plan_tree import plan_document, plan_tree
from heron_cli.view.progress import Progress, progress

__all__ = ["submit_detached"]


def submit_detached(request: SubmitRequest, loading: LoadingTopology, interrupts: Interrupts) -> None:
    """Submits the topology that is being loaded, or shows its plan.

    Raises:
        HeronError: when a step fails; everything before it is undone.
        KeyboardInterrupt: likewise, when it was interrupted.
    """
    overrides = parse_overrides(request.settings)
    with progress(STEPS + 1, interrupts.requested) as shown:
        shown.step("loading the topology")
        profile = find_profile(request.target.profile, request.config_path, overrides)
        prepared = prepare(loading.result(interrupts.requested), profile, overrides)
        run = None if request.dry_run else _submit(request, prepared, profile, shown)
    if run is None:
        _show_plan(request, prepared, profile)
    else:
        _tell(request, run, len(prepared.plan.containers) + 1)


def _submit(request: SubmitRequest, prepared: Prepared, profile: Profile, shown: Progress) -> ExecutionState:
    entries = installed_observers()
    with ExitStack() as stack:
        observers = stack.enter_context(announcing(entries))
        environment = open_environment(profile)
        stack.callback(environment.statemgr.close)
        run = submit(environment, _submission(request, prepared, profile, entries), shown)
        observers.notify("heron_topology_submitted", topology=run.topology, topology_id=run.topology_id)
        _tidy(environment, run, shown)
    return run


def _submission(request: SubmitRequest, prepared: Prepared, profile: Profile, hooks: tuple[str, ...]) -> Submission:
    definition = prepared.loaded.definition
    topology_id = new_topology_id(definition.name)
    return Submission(
        prepared.loaded,
        prepared.plan,
        topology_id,
        name_run_dir(profile.run_dir),
        name_log_dir(profile.log_dir, topology_id),
        engine_settings(profile.engine, definition, on_failure=profile.engine.on_failure),
        hooks,
        prepared.serializers,
        role=request.target.role,
        env=request.target.env,
        deactivated=request.deactivated,
    )


def _tidy(environment: Environment, run: ExecutionState, shown: Progress) -> None:
    """What others have left is no reason to say that this topology was not submitted."""
    try:
        for name in topologies(environment.statemgr):
            if name != run.topology and (note := settle(environment, name)):
                shown.note(note)
        prune_logs(Path(run.log_dir).parent, logs_in_use(environment.statemgr))
    except HeronError as error:
        shown.note(f"what earlier topologies left could not be looked at: {error}")


def _show_plan(request: SubmitRequest, prepared: Prepared, profile: Profile) -> None:
    limits = open_driver(profile.packing, Packing).limits(prepared.loaded.definition)
    if request.as_json:
        document = plan_document(prepared, profile.packing.name, limits)
        print_json(document)
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(plan_tree(prepared, profile.packing.name, limits))
        print("dry run: nothing was changed", file=sys.stderr)


def _tell(request: SubmitRequest, run: ExecutionState, containers: int) -> None:
    if request.as_json:
        document = {
            "topology": run.topology,
            "id": run.topology_id,
            "profile": run.profile,
            "role": run.role,
            "env": run.env,
            "deactivated": run.deactivated,
            "containers": containers,
            "logs": run.log_dir,
        }
        print_json(document)
        return
    how = " deactivated" if run.deactivated else ""
    print(f"{run.topology} submitted{how} as {run.topology_id} in {containers} containers; logs: {run.log_dir}")
