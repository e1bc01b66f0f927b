"""The client of one profile with what most commands need: its drivers, one running topology, and updates of it.

`heron_cli.client.Client` adds all else. A command that is given often begins sooner without that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from heron.driver_kit.loading import load_object
from heron.errors import AccessError
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron_cli.catalog.third_party import open_guarded, open_guarded_statemgr
from heron_cli.topologies.environment import Environment, ProfileChoice, close_statemgr, find_profile
from heron_cli.topologies.run_nodes import topologies
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.status_report import StatusReport, status_report

if TYPE_CHECKING:
    from heron.ipc.documents.metrics_table import MetricsRow
    from heron.ipc.documents.status import UpdateStatus
    from heron_cli.launch.code.code_update import CodeUpdate
    from heron_cli.launch.update import TopologyUpdate
    from heron_cli.topologies.running.code_request import CodeRequest

__all__ = ["NEEDED_FAMILIES", "TIMEOUT_S", "ProfileClient"]

TIMEOUT_S = 10.0
NEEDED_FAMILIES = ("scheduler", "statemgr")
"""What every method needs."""

_WITH_UPLOADER = (*NEEDED_FAMILIES, "uploader")
_WATCH_S = 1.0  # the default period of metrics export

_PLAN_UPDATE = "heron_cli.launch.update:plan_update"
_RUN_UPDATE = "heron_cli.launch.update:run_update"
_UPDATE_CODE = "heron_cli.launch.code.code_update:update_code"
"""Loaded by name because the methods that change no tasks are ready 50 ms earlier without them."""

_PlanUpdate = Callable[[Environment, RemoteTopology, Mapping[str, int], int | None, Collection[str]], "TopologyUpdate"]
_RunUpdate = Callable[
    [Environment, ProfileChoice, RemoteTopology, "TopologyUpdate", Callable[["UpdateStatus"], None]], "TopologyUpdate"
]
_UpdateCode = Callable[[Environment, ProfileChoice, RemoteTopology, "CodeRequest"], "CodeUpdate"]


class ProfileClient:
    """The running topologies of one profile; a context manager. `heron_cli.client.Client` says what it raises."""

    def __init__(self, choice: ProfileChoice, *, read_only: bool = False) -> None:
        """Programs call `heron_cli.client.connect`; commands, which have read the options already, call this."""
        self._choice = choice
        self._read_only = read_only
        self._opened: Environment | None = None
        self._profile = find_profile(choice, NEEDED_FAMILIES)
        self._statemgr: StateManager = open_guarded_statemgr(self._profile.statemgr)
        try:
            self._scheduler: Scheduler = open_guarded(self._profile.scheduler, Scheduler)
            self._scheduler.use_state(self._statemgr)
        except BaseException:
            close_statemgr(self._statemgr)
            raise

    @property
    def profile(self) -> str:
        """The name of the profile."""
        return self._profile.name

    @property
    def read_only(self) -> bool:
        """Whether this client refuses changes."""
        return self._read_only

    def names(self) -> tuple[str, ...]:
        """Return the names of all topologies that exist or have left a report, sorted."""
        return topologies(self._statemgr)

    def topology(self, name: str, *, timeout_s: float = TIMEOUT_S) -> RemoteTopology:
        """Return a connection to the run that has this name now, for repeated requests. The call sends no request.

        The connection keeps its run, and its socket until it is closed: use it as a context manager.
        """
        return RemoteTopology(self._statemgr, self._scheduler, name, timeout_s, read_only=self._read_only)

    def status(self, name: str, *, timeout_s: float = TIMEOUT_S) -> StatusReport:
        """Return the status of a running topology, or the last status of an ended topology.

        Its `status.errors` and `status.processes` hold the newest errors and the state of every process.
        """
        with self.topology(name, timeout_s=timeout_s) as topology:
            return status_report(self._statemgr, self._scheduler, topology)

    def metrics(
        self, name: str, *, component: str = "", task_id: int = 0, timeout_s: float = TIMEOUT_S
    ) -> tuple[MetricsRow, ...]:
        """Return the newest metrics of a running topology.

        Rows are sums by component; for one `component`, or one `task_id` (≥ 1), rows of its tasks. Rows without
        a component are those of the engine's own processes.
        """
        with self.topology(name, timeout_s=timeout_s) as topology:
            return topology.metrics(component, task_id, by_task=bool(component))

    def watch_metrics(
        self,
        name: str,
        *,
        component: str = "",
        task_id: int = 0,
        period_s: float = _WATCH_S,
        timeout_s: float = TIMEOUT_S,
    ) -> Generator[tuple[MetricsRow, ...]]:
        """Yield the metrics of the present run every `period_s` seconds; raise `UsageError` when the run has ended."""
        pause = threading.Event()
        with self.topology(name, timeout_s=timeout_s) as topology:
            while True:
                yield topology.metrics(component, task_id, by_task=bool(component))
                pause.wait(period_s)

    def environment(self) -> Environment:
        """Return the open drivers, with the uploader, which is opened at the first call.

        Raises:
            PluginError, ConfigError: when the uploader is missing or does not work.
        """
        if self._opened is None:
            profile = find_profile(self._choice, _WITH_UPLOADER)
            self._opened = Environment(
                profile, self._statemgr, open_guarded(profile.uploader, Uploader), self._scheduler
            )
        return self._opened

    def update(
        self,
        name: str,
        parallelism: Mapping[str, int] | None = None,
        *,
        containers: int | None = None,
        rebalance: Collection[str] = (),
        dry_run: bool = False,
        timeout_s: float = 300.0,
        on_phase: Callable[[UpdateStatus], None] | None = None,
    ) -> TopologyUpdate:
        """Change the number of tasks of components while the topology runs, and return when that is complete.

        `containers` is the new number of containers; without it, the packing decides. With `rebalance`, tasks stay, and
        key groups of these components move from busy tasks to idle ones, by the tuples of 5 seconds. With `dry_run`,
        only return what would change. `on_phase` is called in each phase.

        Raises:
            TopologyFailedError: when the update is withdrawn, because a new task or container does not run.
            UnreachableError: when it is not complete in time; it continues.
        """
        if not dry_run:
            self._check_writable(f"topology {name!r}")
        plan, run = cast("_PlanUpdate", load_object(_PLAN_UPDATE)), cast("_RunUpdate", load_object(_RUN_UPDATE))
        environment = self._full_environment()
        with self.topology(name, timeout_s=timeout_s) as topology:
            topology.status(control=not dry_run)  # it runs, and this user may change it
            update = plan(environment, topology, parallelism or {}, containers, rebalance)
            return update if dry_run else run(environment, self._choice, topology, update, on_phase or _ignore)

    def update_code(self, name: str, request: CodeRequest, *, timeout_s: float = 300.0) -> CodeUpdate:
        """Let the tasks of each component with other code run it, and return when all do; raises as `update` does.

        Raises:
            TopologyError: when the file does not load or verify.
            TopologyFailedError: when the tasks have returned to the former code.
        """
        if not request.dry_run:
            self._check_writable(f"topology {name!r}")
        change, environment = cast("_UpdateCode", load_object(_UPDATE_CODE)), self._full_environment()
        with self.topology(name, timeout_s=timeout_s) as topology:
            topology.status(control=not request.dry_run)
            return change(environment, self._choice, topology, request)

    def close(self) -> None:
        """Close the state manager; idempotent."""
        close_statemgr(self._statemgr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _full_environment(self) -> Environment:
        """The open drivers, with a profile whose drivers of all families were found."""
        profile = find_profile(self._choice)
        return Environment(profile, self._statemgr, open_guarded(profile.uploader, Uploader), self._scheduler)

    def _check_writable(self, what: str) -> None:
        if self._read_only:
            msg = f"{what}: the client is read-only; connect without read_only to change it"
            raise AccessError(msg)


def _ignore(_phase: UpdateStatus) -> None:
    """The default of `ProfileClient.update`."""
