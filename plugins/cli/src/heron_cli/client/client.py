"""The client of one profile: `connect` and `Client`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, cast

from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest
from heron.driver_kit.loading import load_object
from heron.errors import UsageError
from heron.planner.runtime_config import ConfigChanges
from heron_cli.catalog.other_plugins import check_without, observer_entries
from heron_cli.catalog.plugin_path import add_plugin_path
from heron_cli.client.launch_functions import SubmitResult
from heron_cli.profile_client import NEEDED_FAMILIES, TIMEOUT_S, ProfileClient
from heron_cli.profiles.overrides import split_overrides
from heron_cli.topologies.checkpoint_list import (
    ListedCheckpoint,
    delete_checkpoints,
    find_manifest,
    list_checkpoints,
    needed_checkpoints,
    open_archive,
    wait_for_checkpoint,
)
from heron_cli.topologies.environment import ProfileChoice, find_profile, lifecycle_hooks
from heron_cli.topologies.logs.log_files import LogLine
from heron_cli.topologies.logs.log_reader import find_logs, follow_logs, follow_remote, last_logs
from heron_cli.topologies.logs.log_search import search_logs
from heron_cli.topologies.logs.remote_logs import RemoteLogs
from heron_cli.topologies.package_store import PackageStore, PruneResult, StoredPackage
from heron_cli.topologies.profile_search import profiles_running
from heron_cli.topologies.progress import CollectedNotes, Progress
from heron_cli.topologies.running.restart import RestartedContainer, StateChange, restart_containers, set_state
from heron_cli.topologies.running.runtime_config import ConfigChange, change_config
from heron_cli.topologies.runs.kill_topology import HowKilled, KillResult, kill_topology
from heron_cli.topologies.runs.topology_list import TopologyList, list_topologies

if TYPE_CHECKING:
    from heron_cli.client.launch_functions import Submit
    from heron_cli.launch.loading.loaded import LoadedTopology

__all__ = ["Client", "StateChange", "SubmitResult", "connect", "profiles_of"]

_SUBMIT = "heron_cli.launch.submission:submit_target"
"""Loaded by name because the methods that submit nothing are ready 100 ms earlier without it."""


def connect(
    profile: str = "local",
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    plugin_path: Sequence[Path] = (),
    without: Sequence[str] = (),
    read_only: bool = False,
) -> Client:
    """Open the state manager and the scheduler of a profile.

    Args:
        profile: the name of the profile.
        config_path: a folder of profiles that is searched first, as ``--config-path``.
        overrides: settings by key, as ``--set``; values are text that is read as YAML.
        plugin_path: folders with plugins, as ``--plugin-path``; they stay available to this process.
        without: plugins that are not used, as ``--without``: ``NAME`` or ``FAMILY.NAME``.
        read_only: use only the read-only key of topologies, and change nothing in the state manager.

    Raises:
        ConfigError: when the profile or a setting is unknown or wrong.
        PluginError: when the driver of the state manager or the scheduler is missing or does not work.
    """
    add_plugin_path(plugin_path)
    check_without(without)
    choice = ProfileChoice(profile, config_path, split_overrides(overrides or {}), tuple(without))
    return Client(choice, read_only=read_only)


def profiles_of(topology: str, *, config_path: Path | None = None) -> tuple[str, ...]:
    """Return the names of the profiles under which a topology of that name exists.

    It looks into the state managers of all profiles, for at most 2 s. A profile that cannot be read is left out.

    Raises:
        UsageError: when `topology` is not a valid name.
    """
    return profiles_running(topology, ProfileChoice(config_path=config_path))


class Client(ProfileClient):
    """The topologies of one profile; a context manager.

    A client is for one thread, because drivers of schedulers are: open one client per thread. Every method may
    block as long as the state manager takes to answer (at most 10 s for each request), and longer where it has a
    `timeout_s`. Every method raises

    - `UsageError` when the request is wrong, the topology does not exist, or it refuses; nothing was changed;
    - `AccessError` when a read-only client is asked for a change, or the topology runs with other keys;
    - `UnreachableError` when a topology does not answer in time; the outcome of a change is unknown;
    - `StateError` and its subclasses when the state manager fails, `SchedulerError` when the scheduler fails.
    """

    def list(self) -> TopologyList:
        """Return the topologies of the profile, and those that ended within the last 24 hours.

        The call also cleans up after runs that are over; a read-only client does not.
        """
        return list_topologies(self.environment(), clean=not self._read_only)

    def logs(
        self, name: str, *, task_id: int | None = None, lines: int = 20, search: str = "", timeout_s: float = TIMEOUT_S
    ) -> tuple[LogLine, ...]:
        """Return the last lines of each log of the topology, or of its last run.

        They come from the files of this machine, or from the scheduler if it keeps the logs of containers elsewhere.
        With `search`, only lines with that text, in any case. The lines of the engine come first, by time; then the
        output of the author's code, by task.
        """
        if RemoteLogs.available(self._scheduler, name):
            return RemoteLogs(self._scheduler, name, task_id).last(lines, search)
        folder = self.log_folder(name, timeout_s=timeout_s)
        return search_logs(folder, task_id, search, lines) if search else last_logs(folder, task_id, lines)

    def log_folder(self, name: str, *, timeout_s: float = TIMEOUT_S) -> Path:
        """Return the folder with the logs of the topology, or of its last run, on this machine.

        Raises:
            UsageError: when the logs are with the containers of its scheduler.
        """
        with self.topology(name, timeout_s=timeout_s) as topology:
            folder = find_logs(topology, Path(self._profile.log_dir))
        if "output" in self._scheduler.capabilities and not any(folder.iterdir()):
            msg = (
                f"topology {name!r}: this machine has none of its logs; its containers have them until they go: "
                "`heron list`, `heron submit` and `heron kill` remove the containers of ended topologies"
            )
            raise UsageError(msg)
        return folder

    def follow_logs(
        self, name: str, *, task_id: int | None = None, lines: int = 20, timeout_s: float = TIMEOUT_S
    ) -> Iterator[LogLine]:
        """Yield the last lines as `logs` does, then new lines until the topology ends."""
        with self.topology(name, timeout_s=timeout_s) as topology:
            if RemoteLogs.available(self._scheduler, name):
                yield from follow_remote(topology, RemoteLogs(self._scheduler, name, task_id), lines)
                return
            yield from follow_logs(topology, find_logs(topology, Path(self._profile.log_dir)), task_id, lines)

    def activate(self, name: str, *, timeout_s: float = 30.0) -> StateChange:
        """Resume the spouts of a topology, if they are paused; one that is still starting has `timeout_s` to start."""
        return self._change(name, "running", timeout_s)

    def deactivate(self, name: str, *, timeout_s: float = 30.0) -> StateChange:
        """Pause the spouts until `activate`; emitted tuples are still processed. It waits as `activate` does."""
        return self._change(name, "paused", timeout_s)

    def restart(
        self,
        name: str,
        container: int | None = None,
        *,
        elsewhere: bool = False,
        timeout_s: float = 60.0,
        on_restarted: Callable[[RestartedContainer], None] | None = None,
    ) -> tuple[RestartedContainer, ...]:
        """Restart one container, or all of them one after the other, and wait until each runs again.

        `timeout_s` is the limit for each; `on_restarted` is called for each that is back. `elsewhere`: on another host.

        Raises:
            TopologyFailedError: when a task or process of a container was given up.
        """
        done = []
        with self.topology(name, timeout_s=timeout_s) as topology:
            for each in restart_containers(self._scheduler, self.profile, topology, container, elsewhere=elsewhere):
                done.append(each)
                if on_restarted is not None:
                    on_restarted(each)
        return tuple(done)

    def kill(
        self, name: str, *, timeout_s: float = 10.0, force: bool = False, progress: Progress | None = None
    ) -> KillResult:
        """End a topology and remove everything but its logs and, for a day, its last report.

        The topology has `timeout_s` to stop by itself; then its processes are killed. With `force`, another profile or
        host may have submitted it. A call that is interrupted can be repeated.
        """
        self._check_writable(f"topology {name!r}")
        if not timeout_s >= 0:
            msg = f"the time limit {timeout_s:g} s is below 0 s; give the seconds that it has to stop by itself"
            raise UsageError(msg)
        result = kill_topology(self.environment(), name, timeout_s, progress or CollectedNotes(), force=force)
        killed = result.manner is not HowKilled.OVER and result.state == "killed"
        runs_on = any(each.startswith("job") for each in result.left)
        if result.run and killed and not runs_on:  # else it may still run, or the topology manager notifies them
            with lifecycle_hooks(observer_entries(self._choice.without)) as observers:
                observers.notify(
                    "heron_topology_ended", topology=name, topology_id=result.run.topology_id, state="killed"
                )
        return result

    def submit(
        self,
        target: str | LoadedTopology,
        arguments: Sequence[str] = (),
        *,
        role: str = "",
        env: str = "",
        deactivated: bool = False,
        from_checkpoint: str = "",
        progress: Progress | None = None,
    ) -> SubmitResult:
        """Start the topology of a Python file; it continues when this process ends.

        `target` is ``FILE`` or ``FILE:NAME``, and `arguments` are the `sys.argv` of the file, which runs in a child
        process. `role` and `env` are labels (defaults: the user's name and ``default``). With `deactivated` the
        topology begins paused. With `from_checkpoint`, RUN/NUMBER or ``latest``, its tasks begin with that state.

        Raises:
            CheckpointError: when the checkpoint does not exist, or its state does not fit the topology.
            TopologyError: when the file does not load or the topology does not verify.
            PackingError, PackageError: when a step fails. Everything before it is undone.
        """
        self._check_writable("a submission")
        notes = CollectedNotes()
        submit = cast("Submit", load_object(_SUBMIT))
        run, containers = submit(
            self._full_environment(),
            self._choice,
            target,
            arguments,
            labels=(role, env, deactivated),
            from_checkpoint=from_checkpoint,
            progress=progress or notes,
        )
        return SubmitResult(run, containers, tuple(notes.notes))

    def configure(
        self, name: str, changes: ConfigChanges, *, dry_run: bool = False, timeout_s: float = 60.0
    ) -> tuple[ConfigChange, ...]:
        """Change the configuration of a running topology: new values by component and key; "" is the topology.

        Raises ConfigError when a component is unknown, a key cannot change now, or a value is wrong.
        """
        with self.topology(name, timeout_s=timeout_s) as topology:
            return change_config(self._statemgr, topology, changes, dry_run=dry_run)

    def checkpoints(self, name: str, most: int | None = None, within_s: float = inf) -> tuple[ListedCheckpoint, ...]:
        """Return the complete checkpoints of all runs of a topology, or the `most` newest; newest first.

        Raises:
            ConfigError: when the profile has no checkpoint store.
            CheckpointError: when the store cannot list.
        """
        return list_checkpoints(self._archive(name), most, within_s)

    def checkpoint(self, name: str, checkpoint: str) -> CheckpointManifest:
        """Return what a checkpoint consists of; `checkpoint` is RUN/NUMBER or ``latest``. Raises as `checkpoints` does.

        Raises:
            CheckpointError: when the checkpoint does not exist, or it cannot be read.
        """
        return find_manifest(self._archive(name), name, checkpoint)

    def take_checkpoint(self, name: str, *, timeout_s: float = 60.0) -> CheckpointId:
        """Ask a running topology for a checkpoint; return its id when it is complete.

        Raises:
            TopologyFailedError: when the checkpoint fails; the topology goes on.
            UnreachableError: when it is not complete in time; it continues.
        """
        with self.topology(name, timeout_s=timeout_s) as topology:
            return wait_for_checkpoint(topology)

    def deletable_checkpoints(self, name: str, chosen: Sequence[str] = ()) -> tuple[CheckpointId, ...]:
        """Return these checkpoints, or all that the running topology does not need. Raises as `checkpoints` does."""
        if chosen:
            return tuple(dict.fromkeys(map(CheckpointId.parse, chosen)))
        archive = self._archive(name)
        with self.topology(name) as topology:
            needed = needed_checkpoints(self._statemgr, topology)
        return tuple(each for each in archive.checkpoints() if str(each) not in needed)

    def delete_checkpoints(self, name: str, chosen: Sequence[CheckpointId]) -> None:
        """Delete checkpoints; payloads that another checkpoint needs stay.

        Raises:
            UsageError: when one does not exist, or the running topology needs it; nothing was deleted.
            CheckpointError: when a checkpoint that stays cannot be read; nothing was deleted. Or the store fails.
        """
        self._check_writable(f"the checkpoints of topology {name!r}")
        archive = self._archive(name)
        with self.topology(name) as topology:  # its state first: a checkpoint that completes later is in the list
            needed = needed_checkpoints(self._statemgr, topology)
        delete_checkpoints(archive, chosen, needed)

    def packages(self) -> tuple[StoredPackage, ...]:
        """Return the packages that the profile's uploader stores, youngest first, with the topologies that use them.

        Raises:
            PackageError: when the uploader cannot list its packages.
        """
        return self.package_store().packages()

    def package_store(self) -> PackageStore:
        """Return the stored packages, to find, tag and untag them."""
        return PackageStore(self._statemgr, self.environment().uploader, self._check_writable)

    def prune_packages(self, *, older_than_s: float, keep: int = 0, dry_run: bool = False) -> PruneResult:
        """Remove the packages that no topology of the state manager uses and no tag keeps.

        Packages younger than `older_than_s`, and the `keep` youngest of each name, stay. Raises as `packages` does.
        """
        return self.package_store().prune(older_than_s, keep, dry_run=dry_run)

    def _archive(self, name: str) -> CheckpointArchive:
        return open_archive(find_profile(self._choice, (*NEEDED_FAMILIES, "checkpoint")), name)

    def _change(self, name: str, state: str, timeout_s: float) -> StateChange:
        with self.topology(name, timeout_s=timeout_s) as topology:
            before = set_state(topology, state)
            return StateChange(name, topology.run.topology_id, before, state)
