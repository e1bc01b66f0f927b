"""A connection to a running topology by its name.

The state manager names the topology manager that leads the topology. While there is none, a call waits up to its time
limit, because one is being started or restarted. A fault that waiting cannot remedy is an error at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.errors import (
    AccessError,
    HeronError,
    RemoteProtocolError,
    StateError,
    StateUnavailableError,
    UnreachableError,
    UsageError,
    known,
    nearest,
)
from heron.ipc.documents.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, JobStatus, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.tmanager_location import TManagerLocation, decode_tmanager_location
from heron_cli.topologies.run_nodes import check_name, read_report, read_run

if TYPE_CHECKING:
    from heron.ipc.documents.letter_line import LettersAnswer
    from heron.ipc.documents.metrics_table import MetricsReader, MetricsRow
    from heron.ipc.documents.traces_table import TracesTable
    from heron.ipc.query import TManagerClient
    from heron.spi.task_capture import TaskCapture
    from heron.spi.task_memory import TaskMemory
    from heron.spi.task_profile import TaskProfile
    from heron.spi.task_stacks import TaskStacks
    from heron.spi.task_tuples import TaskTuples
    from heron.state_nodes.health_records import HealthRecords
    from heron_cli.topologies.running.topology_plans import TopologyPlans

__all__ = ["RemoteTopology", "UnreachableTopology", "not_running"]

_OPEN_CLIENT = "heron_cli.topologies.running.tmanager_client:open_tmanager_client"
"""Loaded by name because it brings ZeroMQ and protobuf (60 ms), which `heron list` does not need."""
_READ_PLANS = "heron_cli.topologies.running.topology_plans:read_plans"
_READ_HEALTH_RECORDS = "heron_cli.topologies.running.topology_plans:read_health_records"
"""Loaded by name because they bring the physical plan and the values of health policies, 24 dataclasses."""

_ANSWER_S = 2.0  # a topology manager answers in milliseconds; after this time another may lead
_RETRY_S = 0.1
_LOCATED_S = 5.0  # while its connection answers: a look-up costs half of a question
_LONGEST_S = 60.0  # a topology manager waits no longer for a task
_REFUSED_KEYS = 2  # a topology manager that is leaving, or has just taken over a port, may refuse the keys once

C = TypeVar("C")
T = TypeVar("T")

Question = Callable[["TManagerClient", float], T]
"""Asks through a client, within the given number of seconds."""

_OpenClient = Callable[..., "TManagerClient"]


@dataclass(frozen=True, slots=True)
class UnreachableTopology:
    """The facts about a topology whose topology manager does not answer.

    `planned` is whether it has a physical plan, `locked` whether a command is changing it. `job` is the state of
    its job; None when the scheduler gave no answer, for the reason `scheduler_error`.
    """

    planned: bool
    locked: bool
    job: SchedulerState | None
    containers: tuple[ContainerStatus, ...] = ()
    scheduler_error: str = ""

    def dead(self) -> bool:
        """Return whether none of its processes runs and no command is about to start them."""
        return not self.locked and self.job is not None and self.job is not SchedulerState.RUNNING

    def cannot_begin(self) -> bool:
        """Return whether the scheduler says why container 0 has never started."""
        return any(each.container_id == 0 and not each.attempts and each.last_error for each in self.containers)

    def reason(self) -> str:
        """Return why it does not answer, for people."""
        why = "".join(f"; {not_running(each)}" for each in self.containers if not each.running and each.last_error)
        if self.scheduler_error:
            why += f"; the state of its job is unknown: {self.scheduler_error}"
        if not self.planned:
            return f"it is starting, its topology manager is not there yet{why}"
        stands = self.containers and not any(each.running for each in self.containers if each.container_id)
        data = "no container with tasks runs" if stands else "data flows on"
        return f"its topology manager is being restarted; {data}{why}"


def not_running(container: ContainerStatus) -> str:
    """Return what the scheduler says of a container that does not run."""
    starts = "1 start" if container.attempts == 1 else f"{container.attempts} starts"
    why = f": {container.last_error}" if container.last_error else ""
    return f"container {container.container_id} does not run, after {starts}{why}"


class RemoteTopology:
    """One run of a topology: the run that has the name at the first call. Not thread-safe; a context manager.

    A process of the topology that has keys opens the client for an endpoint itself, by `client_of`. Others find the
    keys in the state manager.

    Every method takes at most about `timeout_s` seconds and raises

    - `UsageError` when the topology does not run, has ended, or refuses; nothing was changed;
    - `AccessError` when a read-only connection is asked for a change, or the keys in the state manager are
      not those of the running topology;
    - `UnreachableError` when it does not answer in time; the message has the reason;
    - `StateError` when the state manager does not answer, or a node cannot be read;
    - `RemoteProtocolError` when the topology runs with a version of heron-core that this one does not understand.
    """

    def __init__(
        self,
        statemgr: StateManager,
        scheduler: Scheduler,
        name: str,
        timeout_s: float,
        *,
        read_only: bool = False,
        client_of: Callable[[str], TManagerClient] | None = None,
    ) -> None:
        self.name = name
        self._read_only = read_only
        self.timeout_s = timeout_s
        self.statemgr = statemgr
        self._scheduler = scheduler
        self._run: ExecutionState | None = None
        self._client: TManagerClient | None = None
        self._open_own = client_of
        self._client_of: tuple[str, str, bool] | None = None
        self._located: TManagerLocation | None = None
        self._located_at_s = float("-inf")

    @property
    def run(self) -> ExecutionState:
        """The execution state: who submitted it, when, and where its folders are."""
        if self._run is None:
            self._run = self._find()
        return self._run

    def status(self, *, control: bool = False, begun_s: float = float("inf")) -> TopologyStatus:
        """Return the current status; with `control`, ask with the control key, which checks it.

        It waits `begun_s` at most for a container 0 that has never started, if the scheduler says why.
        """
        return self._ask(control, lambda client, left_s: client.status(left_s), begun_s=begun_s)

    def job(self) -> JobStatus:
        """Return its job as the scheduler sees it, also while the topology manager does not answer.

        Raises:
            SchedulerError: when the scheduler does not answer.
        """
        return self._scheduler.status(self.name).of(self.run.topology_id)

    def metrics(self, component: str = "", task_id: int = 0, *, by_task: bool = False) -> tuple[MetricsRow, ...]:
        """Return its newest metrics, summed up by component or by task; "" and 0 mean all."""
        return self._ask(
            False,
            lambda client, left_s: client.metrics(component, task_id, by_task=by_task, timeout_s=left_s),
        )

    def read_task_metrics(self, names: Collection[str], reader: MetricsReader[C]) -> None:
        """Give its newest metrics of these names, by task, to a reader.

        No names mean all metrics. The name ``user/`` means the first 33 that the author of each task registers.
        A topology manager of an earlier version returns those of all names.
        """
        self._ask(False, lambda client, left_s: client.read_task_metrics(names, reader, left_s))

    def traces(self, limit: int = 0) -> TracesTable:
        """Return the traces of tuples that its topology manager keeps, at most the newest `limit`; 0 means all."""
        return self._ask(False, lambda client, left_s: client.traces(limit, left_s))

    def stacks(self, task_id: int, component: str = "") -> TaskStacks:
        """Return the threads of a task, with the calls in which they are.

        Raises:
            RefusedError: also when the task has no inspector.
            UnreachableError: also when the task itself does not answer within `timeout_s`; the message has its process.
        """
        return self._ask_task(False, lambda client, left_s: client.stacks(component, task_id, left_s))

    def take_letters(self, task_id: int, ids: Collection[str], *, drop: bool) -> LettersAnswer:
        """Drop stored dead letters of a task, at most 1,000, or have them emitted or processed again.

        Raises:
            RefusedError: also when the task keeps no dead letters, is paused or has ended.
            UnreachableError: also when the task does not answer within `timeout_s`; the outcome is unknown.
        """
        return self._ask_task(True, lambda client, left_s: client.letters(task_id, ids, left_s, drop=drop))

    def profile(self, task_id: int, component: str = "", *, seconds: float = 10.0) -> TaskProfile:
        """Return where the thread of a task spends its time, by samples over `seconds` (above 0, at most 300).

        The call takes `seconds` longer than others.

        Raises:
            RefusedError: also when the task is being profiled already, or has no inspector.
            UnreachableError: also when the task ends meanwhile, or does not answer.
        """
        return self._ask_task(False, lambda client, left_s: client.profile(component, task_id, seconds, left_s))

    def memory(self, task_id: int, component: str = "", *, seconds: float = 5.0) -> TaskMemory:
        """Return what the memory of a task holds, and what grows in it over `seconds` (0 to 300; 0: a single look).

        The call takes `seconds` longer than others, and the task is slower meanwhile.

        Raises:
            RefusedError: also when the task is being observed already, or has no inspector.
            UnreachableError: also when the task ends meanwhile, or does not answer.
        """
        return self._ask_task(False, lambda client, left_s: client.memory(component, task_id, seconds, left_s))

    def tuples(self, task_id: int, component: str = "", *, tuples: int = 10, seconds: float = 10.0) -> TaskTuples:
        """Return the next `tuples` (1 to 100) that a task receives and emits, or those of `seconds` (at most 300).

        Raises:
            RefusedError: also when the topology does not allow it, the task is being observed already, or it has no
                inspector.
            UnreachableError: also when the task ends meanwhile, or does not answer.
        """
        return self._ask_task(False, lambda client, left_s: client.tuples(component, task_id, tuples, seconds, left_s))

    def capture(
        self, task_id: int, *, seconds: float, most_bytes: int, keys: Collection[tuple[str, str]] | None = None
    ) -> TaskCapture:
        """Return what a task emits within `seconds` (at most 300), in at most `most_bytes` (1 KiB to 32 MiB).

        With `keys`, which may be empty, no value leaves the task: those of the fields in `keys`, ``(stream, field)``,
        become hashes, and all others their type and length.

        Raises:
            RefusedError: also when the topology does not allow it, the task is being observed already, or it has no
                inspector that takes captures.
            UnreachableError: also when the task ends meanwhile, or does not answer.
        """
        return self._ask_task(
            False, lambda client, left_s: client.capture("", task_id, seconds, most_bytes, keys, left_s)
        )

    def plans(self) -> TopologyPlans:
        """Return its logical, packing and physical plan from the state manager; no question goes to the topology."""
        check_name(self.name)
        read = cast("Callable[[StateManager, str], TopologyPlans]", load_object(_READ_PLANS))
        return read(self.statemgr, self.name)

    def health_records(self) -> HealthRecords:
        """Return the decisions of its health manager from the state manager; those of another run count as none."""
        read = cast("Callable[[StateManager, ExecutionState], HealthRecords]", load_object(_READ_HEALTH_RECORDS))
        return read(self.statemgr, self.run)

    def change_state(self, state: str) -> None:
        """Change its state to ``running``, ``paused`` or ``killed``; return when the state is written.

        A topology that has the state already is not an error.
        """
        self._ask(True, lambda client, left_s: client.change_state(state, left_s))

    def begin_update(self, packing: bytes, base: str, owners: bytes = b"", code: bytes = b"") -> None:
        """Change its tasks to those of a packing plan (a document) that was made from the one with the id `base`.

        `owners` is a document of `heron.planner.key_balance`, `code` one of `heron.planner.code_change`. Returns when
        the first phase of the update is written; `status().update` shows the others.
        """
        self._ask(True, lambda client, left_s: client.begin_update(packing, base, owners, code, left_s))

    def change_config(self, document: bytes) -> None:
        """Change its configuration, with a document of `heron.planner.runtime_config`; return when it is written."""
        self._ask(True, lambda client, left_s: client.change_config(document, left_s))

    def withdraw_update(self, reason: str) -> None:
        """Withdraw the update under way, or new code that a share of the tasks runs.

        It is refused when data takes the new routes already.
        """
        self._ask(True, lambda client, left_s: client.withdraw_update(reason, left_s))

    def take_checkpoint(self) -> None:
        """Ask for a checkpoint; return when it is ordered. `status().checkpoints` shows its progress."""
        self._ask(True, lambda client, left_s: client.take_checkpoint(left_s))

    def over(self) -> bool:
        """Return whether this run has ended and none of its processes runs any more."""
        present = read_run(self.statemgr, self.name)
        return present is None or present.topology_id != self.run.topology_id or self._unreachable().dead()

    def last_report(self) -> TopologyStatus | None:
        """Return the last status of the newest run of that name that has ended, if it is still kept."""
        check_name(self.name)
        report = read_report(self.statemgr, self.name)
        return report.status if report else None

    def close(self) -> None:
        """Close the socket, not the drivers; idempotent."""
        if self._client is not None:
            self._client.close()
        self._client = self._client_of = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask_task(self, control: bool, question: Question[T | str]) -> T:
        """As `_ask`; the task may answer until the deadline, or take the seconds of an observation longer."""
        answer = self._ask(control, question, _LONGEST_S)
        if isinstance(answer, str):
            msg = f"topology {self.name!r}: {answer}"
            raise UnreachableError(msg)
        return answer

    def _ask(
        self, control: bool, question: Question[T], longest_s: float = _ANSWER_S, begun_s: float = float("inf")
    ) -> T:
        if control and self._read_only:
            msg = f"topology {self.name!r}: the client is read-only; connect without read_only to change it"
            raise AccessError(msg)
        began_s = monotonic_s()
        pause = threading.Event()
        refused = 0
        while True:
            wait_s = self.timeout_s
            location = self._location(control)
            if location is None:
                absent = self._absence()
                why = absent.reason()
                if absent.cannot_begin():
                    wait_s = min(wait_s, begun_s)
            else:
                left_s = max(_RETRY_S, min(began_s + wait_s - monotonic_s(), longest_s))
                try:
                    return question(self._connected(location, control), left_s)
                except UnreachableError as error:
                    why = str(error)
                except AccessError as error:
                    why = str(error)
                    refused += 1
                    if refused == _REFUSED_KEYS:
                        raise AccessError(self._other_keys(why)) from error
                except RemoteProtocolError as error:
                    msg = f"topology {self.name!r}: {error}; use the version of heron-core that runs it"
                    raise RemoteProtocolError(msg) from error
                self.close()
            if monotonic_s() >= began_s + wait_s:
                msg = f"topology {self.name!r}: {why}; given up after {wait_s:g} s, try again"
                raise UnreachableError(msg)
            pause.wait(_RETRY_S)

    def _other_keys(self, why: str) -> str:
        return (
            f"topology {self.name!r}: {why}; the node {NodeKind.KEYS.value!r} of the state manager was changed since "
            f"{self.run.topology_id!r} began; put it back, or `{self.run.kill_command}` and submit it again"
        )

    def _connected(self, location: TManagerLocation, control: bool) -> TManagerClient:
        wanted = (location.endpoint, location.server_key, control)
        if self._client is None or self._client_of != wanted:
            self.close()
            if self._open_own is not None:
                self._client = self._open_own(location.endpoint)
            else:
                open_client = cast("_OpenClient", load_object(_OPEN_CLIENT))
                self._client = open_client(
                    location.endpoint, self.keys().value, self.name, control=control, server_key=location.server_key
                )
            self._client_of = wanted
        return self._client

    def keys(self) -> Versioned:
        """Return the node with the keys; `heron.state_nodes.topology_keys` reads its value."""
        node = self.statemgr.get(NodeKind.KEYS, self.name)
        if node is None:
            remedy = f"`{self.run.kill_command}` and submit it again"
            msg = f"topology {self.name!r} has no keys in the state manager; {remedy}"
            raise StateError(msg)
        return node

    def _location(self, control: bool) -> TManagerLocation | None:
        """Return where the topology manager of this run is.

        It is looked up before a change, after a failure, and else from time to time: a former leader that cannot reach
        the state manager may answer questions meanwhile.
        """
        answers = self._client is not None and self._located is not None
        if control or not answers or monotonic_s() - self._located_at_s >= _LOCATED_S:
            self._located, self._located_at_s = self.located(), monotonic_s()
        return self._located

    def located(self) -> TManagerLocation | None:
        """Return where the topology manager of this run is now, and its public key."""
        node = self.statemgr.get(NodeKind.TMANAGER_LOCATION, self.name)
        location = decode_tmanager_location(node.value, self.name) if node else None
        return location if location and location.topology_id == self.run.topology_id else None

    def _absence(self) -> UnreachableTopology:
        """Return the facts about a topology without a topology manager now.

        Raises:
            UsageError: when there will be none.
        """
        present = read_run(self.statemgr, self.name)
        if present is None or present.topology_id != self.run.topology_id:
            raise UsageError(self._ended())
        if (report := self.last_report()) and report.topology_id == self.run.topology_id:
            raise UsageError(self._ended())  # though its processes may still be ending
        unreachable = self._unreachable()
        if not unreachable.dead():
            return unreachable
        msg = (
            f"topology {self.name!r} is not running any more: its processes are gone and did not clean up; "
            f"`{self.run.kill_command}` removes what they left"
        )
        raise UsageError(msg)

    def _unreachable(self) -> UnreachableTopology:
        for kind in (NodeKind.TOPOLOGY, NodeKind.PACKING_PLAN):
            self.statemgr.get(kind, self.name)  # raises when it is damaged: then no topology manager can begin
        job, error = None, ""
        try:
            job = self.job()
        except HeronError as caught:
            error = str(caught)
        return UnreachableTopology(
            self._planned(),
            self.statemgr.get(NodeKind.LOCK, self.name) is not None,
            job.state if job else None,
            job.containers if job else (),
            error,
        )

    def _planned(self) -> bool:
        try:
            return self.statemgr.get(NodeKind.PHYSICAL_PLAN, self.name) is not None
        except StateUnavailableError:
            raise
        except StateError:
            return True  # damaged: the next topology manager writes a new one

    def _find(self) -> ExecutionState:
        check_name(self.name)
        if present := read_run(self.statemgr, self.name):
            return present
        raise UsageError(self._ended())

    def _ended(self) -> str:
        report = self.last_report()
        if report is not None:
            how = "was killed" if report.state == "killed" else report.state
            why = f": {report.error}" if report.error else ""
            return f"topology {self.name!r} is not running; its last run, {report.topology_id}, {how}{why}"
        names = self.statemgr.list(NodeKind.EXECUTION_STATE)
        return f"topology {self.name!r} is not running{nearest(self.name, names)}; running: {known(names)}"
