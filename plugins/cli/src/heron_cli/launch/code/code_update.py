"""Gives a running topology new code: compares it, stores its package, and follows the change to its end.

The topology manager leads the change, and returns it when a task with the new code fails. This module decides only
about canaries. See ``docs/code-updates.md``.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heron.api.definition import ComponentKind
from heron.checkpoints.manifest import CheckpointId
from heron.clock import monotonic_s
from heron.errors import HeronError, RefusedError, TopologyFailedError, UnreachableError, UsageError
from heron.ipc.documents.status import CodeStatus
from heron.kernel.package import pack
from heron.planner.code_change import CodeChange, encode_change, replaced
from heron.planner.verify import verify
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import encode_plan
from heron_cli.launch.code.canaries import chosen_canaries, counted, observed
from heron_cli.launch.code.new_code import compared
from heron_cli.launch.code.running_code import RunningCode, running_code
from heron_cli.launch.code.state_check import check_state, other_versions
from heron_cli.launch.code.task_health import Comparison, TaskCounts, compared_health
from heron_cli.launch.loading.loaded import LoadedTopology, split_target
from heron_cli.launch.prepare import load_target
from heron_cli.launch.submission import manifest_of
from heron_cli.topologies.checkpoint_list import open_archive, wait_for_checkpoint
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.run_nodes import read_run
from heron_cli.topologies.running.code_request import CodeRequest
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.topology_end import check_not_ended
from heron_cli.topologies.runs.cleanup import acquire_lock

__all__ = ["CodeUpdate", "update_code"]

_POLL_S = 0.05
_LOCK_WAIT_S = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CodeUpdate:
    """New code, and what it changes: the components, and their tasks before. `notes` say what differs besides.

    `package` is the URI of the new package; "" if nothing has changed. `took_s` is the time until all tasks ran the new
    code; None for a dry run. `compared` are the health of the canaries and of the others. `files` are those of the new
    program.
    """

    topology: str
    changed: tuple[str, ...]
    tasks: tuple[int, ...]
    canaries: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    package: str = ""
    took_s: float | None = None
    compared: tuple[Comparison, ...] = ()
    files: tuple[Path, ...] = ()


def update_code(
    environment: Environment,
    choice: ProfileChoice,
    topology: RemoteTopology,
    request: CodeRequest,
    load: Callable[[], LoadedTopology] | None = None,
) -> CodeUpdate:
    """Compare a file with the running topology, and let the tasks of each component with other code run it.

    `load` loads the file that the request names; without it, the file is loaded as the running one was.

    Raises:
        RefusedError: when the topology starts or is paused, or another update is under way; nothing has changed.
        UsageError: when the new code defines another topology, or cannot read the saved state; nothing has changed.
        TopologyError: when the file does not load or verify; nothing has changed.
        TopologyFailedError: when the tasks have returned to the former code; says why.
        UnreachableError: when the change is not complete in time; it continues.
    """
    began_s = monotonic_s()
    with running_code(environment, topology) as running:
        loaded = load() if load is not None else _loaded(running, choice, request)
        loaded = replace(loaded, definition=choice.overrides.configured(loaded.definition))
        verify(loaded.definition)
        new = compared(running.plan.topology, loaded.definition)
        changed = tuple(dict.fromkeys((*new.changed, *running.other_code(loaded))))
    ordered = tuple(each.name for each in new.topology.components if each.name in changed)
    tasks = tuple(each.task_id for _, each in running.packing.instances() if each.component in changed)
    canaries = chosen_canaries(running.packing, ordered, request.canary) if request.canary else ()
    files = tuple(loaded.root / each for each in loaded.files)
    planned = CodeUpdate(topology.name, ordered, tasks, canaries, new.notes, files=files)
    if tasks and running.plan.checkpoints is not None:
        _check_state(environment, topology, loaded, planned, may_take=not request.dry_run)
    if request.dry_run or not tasks:
        return planned if request.dry_run else replace(planned, took_s=0.0)
    uri = _stored(environment, topology, loaded)
    if uri == running.uri:  # only options of the command differ, and a package has one definition
        msg = f"topology {topology.name!r} runs these files already; change values with --runtime-config"
        raise UsageError(msg)
    change = CodeChange(uri, new.topology, ordered)
    done = _CodeRun(environment, topology, running, request, change, planned).follow()
    return replace(done, package=uri, took_s=round(monotonic_s() - began_s, 3))


def _loaded(running: RunningCode, choice: ProfileChoice, request: CodeRequest) -> LoadedTopology:
    """Load the file as the running one was: with its arguments, and its topology if the file has several."""
    target, arguments = request.target, tuple(request.arguments) or running.manifest.argv
    path, name = split_target(target)
    if name is None and running.manifest.choice is not None and path.stem == running.manifest.module:
        target = f"{target}:{running.manifest.choice}"
    return load_target(target, arguments, choice)


def _check_state(
    environment: Environment, topology: RemoteTopology, loaded: LoadedTopology, planned: CodeUpdate, *, may_take: bool
) -> None:
    """Check that the new code can read the newest checkpoint; take one if there is none yet.

    Raises:
        UsageError: when it cannot.
    """
    newest = topology.status().checkpoints
    number = newest.complete if newest else 0
    if not number and not may_take:
        return
    taken = CheckpointId(topology.run.topology_id, number) if number else wait_for_checkpoint(topology)
    manifest = open_archive(environment.profile, topology.name).manifest(taken)
    check_state(manifest, loaded.states, planned.changed)
    if planned.canaries and (others := other_versions(manifest, loaded.states, planned.changed)):
        msg = (
            f"component {others[0]!r} has another state_version, and the tasks of a component save one version; "
            "leave out --canary"
        )
        raise UsageError(msg)


def _stored(environment: Environment, topology: RemoteTopology, loaded: LoadedTopology) -> str:
    """Store the package of the new code; return its URI, which the execution state has then.

    Raises:
        PackageError: when it cannot be packed or stored.
    """
    with tempfile.TemporaryDirectory(prefix="heron-package-") as name:
        package = Path(name, f"{topology.name}.tar.gz")
        pack(loaded.root, loaded.files, manifest_of(loaded), package)
        lock = acquire_lock(environment.statemgr, topology.name, _LOCK_WAIT_S)
        try:
            uri = environment.uploader.upload(package, topology.name)
            _change_packages(environment, topology, added=uri)
        finally:
            lock.release()
    return uri


def _change_packages(environment: Environment, topology: RemoteTopology, *, added: str = "", removed: str = "") -> None:
    run: ExecutionState | None = read_run(environment.statemgr, topology.name)
    if run is None or run.topology_id != topology.run.topology_id:
        return  # it has ended
    kept = tuple(each for each in run.more_packages if each not in {added, removed})
    more = (*kept, added) if added and added != run.package_uri else kept
    if more != run.more_packages:
        value = encode_execution_state(replace(run, more_packages=more))
        environment.statemgr.set(NodeKind.EXECUTION_STATE, run.topology, value)


class _CodeRun:
    """One change of the code, from its request to its end."""

    def __init__(
        self,
        environment: Environment,
        topology: RemoteTopology,
        running: RunningCode,
        request: CodeRequest,
        change: CodeChange,
        planned: CodeUpdate,
    ) -> None:
        self._environment = environment
        self._topology = topology
        self._running = running
        self._request = request
        self._change = change
        self._planned = planned
        self._spouts = [each.name for each in running.plan.topology.components if each.kind is ComponentKind.SPOUT]
        self._before: dict[int, TaskCounts] = {}
        self._shown = ("", "")

    def follow(self) -> CodeUpdate:
        """Change the tasks, and return when all of them run the new code."""
        planned, deadline_s = self._planned, monotonic_s() + self._topology.timeout_s
        try:
            if planned.canaries:
                self._before = self._count()
            self._check_unchanged()
            self._begin(planned.canaries or planned.tasks, self._request.canary_for_s if planned.canaries else 0.0)
        except UsageError:
            if self._outcome()[0] == "returned":  # else the answer to an earlier request was lost
                self._remove(self._change.package)
            raise
        compared: tuple[Comparison, ...] = ()
        while (status := self._wait(deadline_s, until_canary=planned.canaries != () and not compared)) is not None:
            compared = self._decide(status)
            deadline_s = monotonic_s() + self._topology.timeout_s
        return replace(planned, compared=compared)

    def _check_unchanged(self) -> None:
        """Check that nobody has configured the topology since it was compared; the change would undo that.

        Raises:
            RefusedError: when its definition is another one.
        """
        plan = self._topology.plans().physical
        if plan is not None and plan.topology != self._running.plan.topology:
            msg = f"the configuration of topology {self._topology.name!r} has changed meanwhile; try again"
            raise RefusedError(msg)

    def _begin(self, tasks: Sequence[int], canary_s: float) -> None:
        packing = self._topology.plans().packing
        target = replaced(packing, tasks, self._change.package) if tasks else packing
        change = encode_change(replace(self._change, canary_s=canary_s))
        self._topology.begin_update(encode_plan(target), packing.id, code=change)

    def _wait(self, deadline_s: float, *, until_canary: bool) -> CodeStatus | None:
        """Return the status of canaries that all run; None when the change is complete.

        Raises:
            TopologyFailedError: when the tasks have returned.
        """
        pause = threading.Event()
        while True:
            status = self._topology.status()
            check_not_ended(status)
            now = status.code if status.code and status.code.package == self._change.package else None
            if now is not None and (now.phase, now.reason) != self._shown:
                self._shown = now.phase, now.reason
                self._request.on_phase(now, ())
            phase, reason = (now.phase, now.reason) if now is not None else self._outcome()
            if phase == "complete":
                self._remove(self._running.uri)
                return None
            if phase == "returned":
                self._remove(self._change.package)
                msg = f"topology {self._topology.name!r} runs its former code again: {reason}"
                raise TopologyFailedError(msg)
            if phase == "canary" and until_canary:
                return now
            if monotonic_s() >= deadline_s:
                msg = (
                    f"the new code of topology {self._topology.name!r} is not complete after "
                    f"{self._topology.timeout_s:g} s, in phase {phase}; it continues, see "
                    f"`heron status {self._topology.name}`"
                )
                raise UnreachableError(msg)
            pause.wait(_POLL_S)

    def _outcome(self) -> tuple[str, str]:
        """What has become of the change, when the topology manager does not know: another one leads."""
        plan = self._topology.plans().physical
        if plan is None or (plan.code is not None and plan.code.package == self._change.package):
            return "change", ""
        if plan.package == self._change.package:
            return "complete", ""
        return "returned", "another topology manager took over"

    def _decide(self, status: CodeStatus) -> tuple[Comparison, ...]:
        """Observe the canaries, then let all tasks follow or the canaries return; return what was compared."""
        try:
            counts = observed(self._count, self._request.canary_for_s, self._goes_on)
        except KeyboardInterrupt:
            self._topology.withdraw_update("the command was interrupted")
            raise
        packing = self._topology.plans().packing
        tasks = {each.task_id: each.component for _, each in packing.instances()}
        present = {tasks[each] for each in tasks if each not in status.tasks}
        for task, former in self._before.items():  # a component with no other task is compared with its own past
            name = self._component_of(task)
            if task not in tasks and name not in present:
                tasks[task], counts[task] = name, former
        compared = compared_health(tasks, counts, [each for each in status.tasks if each in tasks])
        self._request.on_phase(status, [f"{each.text}{each.worse and ': worse, '}{each.worse}" for each in compared])
        worse = "; ".join(f"{each.component}: {each.worse}" for each in compared if each.worse)
        if not self._goes_on():
            return compared  # it has returned by itself, or ended
        if worse:
            self._topology.withdraw_update(worse)
        else:
            rest = [
                each.task_id
                for _, each in packing.instances()
                if each.component in self._change.components and each.task_id not in status.tasks
            ]
            self._begin(rest, 0.0)
        return compared

    def _goes_on(self) -> bool:
        """Whether the canaries run; a topology manager that has taken over first waits for the reports of all tasks."""
        now = self._topology.status().code
        return now is not None and now.phase in {"change", "canary"} and now.package == self._change.package

    def _count(self) -> dict[int, TaskCounts]:
        return counted(self._topology, self._spouts)

    def _component_of(self, task_id: int) -> str:
        return next((each.component for _, each in self._running.packing.instances() if each.task_id == task_id), "")

    def _remove(self, uri: str) -> None:
        """Remove a package that no task has any more; that of the submission stays, because containers name it."""
        if uri in {"", self._topology.run.package_uri}:
            return
        try:
            lock = acquire_lock(self._environment.statemgr, self._topology.name, _LOCK_WAIT_S)
            try:
                self._environment.uploader.undo(uri)
                _change_packages(self._environment, self._topology, removed=uri)
            finally:
                lock.release()
        except HeronError as error:  # the end of the topology removes it; it must not hide the outcome
            _log.warning("package %s stays until the end of the topology: %s", uri, error)
