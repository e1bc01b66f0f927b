"""The executors of a job as tasks of a framework of Mesos: the supervisor's side.

All state is in the tasks and in the file ``mesos.json``, which is written before Mesos hears of a task. Events are
processed when the supervisor reaps; `heron_scheduler_mesos.tasks` has the rules.
"""

from __future__ import annotations

import json
import logging
import selectors
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import msgspec

from heron.api.api_constants import TOPOLOGY_TMANAGER_STANDBYS
from heron.clock import monotonic_s, wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron.spi.scheduler import ContainerSpec
from heron.spi.typed_values import decode_json
from heron_scheduler_kit.executors import Executors, Exit, JobFacts, JobLeftError, Placement
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.managed.launch_file import LaunchFile
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_kit.sealing import SealKey
from heron_scheduler_kit.supervision import BackoffLimits, next_wait_s
from heron_scheduler_mesos.constraints import elsewhere
from heron_scheduler_mesos.framework import (
    FrameworkRecord,
    accept,
    error_message,
    framework_info,
    is_gone,
    keep_ended,
    read_framework,
    task_info,
    write_framework,
)
from heron_scheduler_mesos.master_link import LinkLost, MasterLink, framework_id
from heron_scheduler_mesos.mesos_access import find_access
from heron_scheduler_mesos.offers import Launch, Waiting, decide, decode_offers, told
from heron_scheduler_mesos.options import MesosOptions
from heron_scheduler_mesos.sandbox import read_note
from heron_scheduler_mesos.started import StartedContainer
from heron_scheduler_mesos.tasks import TaskPhase, Tasks, call
from heron_scheduler_mesos.visit import visit

__all__ = ["MesosExecutors"]

_RECONCILE_S = 30.0
_RETRY = BackoffLimits(0.5, 5.0, 30.0)
_REFUSE_S = 5.0  # an offer that is too small comes again, perhaps larger
_REFUSE_LONG_S = 3600.0  # nothing waits: REVIVE ends it
_CLOSE_S = 4.0
_GONE_S, _INTERVAL_S = 6.0, 0.02
_SUPERSEDED = "failed over"
_REMEDY = "correct the section scheduler of the profile, or grant the rights in the README of heron-scheduler-mesos"

_log = logging.getLogger(__name__)


class MesosExecutors(Executors):
    """Starts and ends tasks through the link to the master."""

    tick_s = 0.25

    def __init__(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> None:
        super().__init__(folder, record, selector)
        self._options = msgspec.convert(record.options, MesosOptions)
        self._access = find_access(self._options)
        self._link = MasterLink(self._access, self._options.silence_s)
        found = read_framework(folder)
        jobs = set(folder.container_ids())
        self._resumed = found is not None and bool(found.framework_id)
        self._framework_id = found.framework_id if found else ""
        self._tasks = Tasks(
            {each.container_id: each for each in found.tasks if each.container_id in jobs} if found else {},
            found.launches if found else 0,
        )
        self._started: dict[int, StartedContainer] = {}
        self._subscribed = self._taken_over = self._left = False
        self._lost = LinkLost("")
        self._begun_s = monotonic_s()
        self._wait_s, self._again_at_s, self._reconcile_at_s = 0.0, float("inf"), float("inf")

    def begin(self) -> None:
        try:
            self._key = SealKey.read(Path(self._options.key_file).expanduser())
        except SchedulerError as error:
            if not self._resumed:
                raise
            self._left = True
            raise JobLeftError(str(error)) from error
        self.selector.register(self._link, selectors.EVENT_READ, lambda: None)
        self._subscribe()

    def taken_over(self) -> bool:
        late = monotonic_s() - self._begun_s > min(self._options.start_s, 20.0)
        if not self._subscribed and (self._lost.refused or late):
            silent = f"no master of {', '.join(self._access.masters)} answers; correct scheduler.masters"
            why = self._lost.reason or silent
            if self._resumed:
                self._left = True
                raise JobLeftError(why)
            raise SchedulerError(why)
        return self._subscribed

    def start(self, container_id: int, attempt: int) -> None:
        path = self.folder.spec_file(container_id)
        data = {**json.loads(path.read_bytes()), "attempt": attempt}
        write_private(path, json.dumps(data).encode())
        spec = decode_json(json.dumps(data).encode(), ContainerSpec)
        standbys = int(str(spec.settings.get(TOPOLOGY_TMANAGER_STANDBYS, 0)))
        others = [each for each in self.folder.container_ids() if each]
        manager = standbys > 0 and container_id in {0, *others[:standbys]}
        asked = ManagedJob("", "").with_added([spec], self._options, lambda _job, _id: "").request(container_id)
        need = Waiting(container_id, asked.cpu, asked.memory_mb, asked.disk_mb, manager)
        self._started[container_id] = StartedContainer(need, data)
        self._tasks.start(container_id, attempt, manager=manager)
        self._call([call("REVIVE")])

    def terminate(self, container_id: int) -> None:
        self._call(self._tasks.end(container_id, self._options.end_s))

    def kill(self, container_id: int) -> None:
        self._call(self._tasks.end(container_id, 0.0))

    def placement(self, container_id: int) -> Placement:
        task, started = self._tasks.by_container.get(container_id), self._started.get(container_id)
        if task is None or started is None:
            return Placement(up=False)
        if started.is_up(task):
            return Placement(True, f"agent {task.host}", host=task.host)
        if task.phase is not TaskPhase.WAITING:
            return Placement(False, waits=f"is being started on agent {task.host}")
        if not self._subscribed:
            return Placement(False, waits=f"waits for a master of Mesos: {self._lost.reason or 'none answers yet'}")
        return Placement(False, waits=told(started.need, started.refusals))

    def identity(self, container_id: int) -> ProcessIdentity | None:
        started = self._started.get(container_id)
        return started.identity if started is not None else None

    def facts(self) -> JobFacts:
        page = (self._options.page or self._link.leader or self._access.masters[0]).rstrip("/")
        return JobFacts(f"framework {self._framework_id}", {"framework": f"{page}/#/frameworks/{self._framework_id}"})

    def reap(self) -> tuple[Exit, ...]:
        for event in self._link.receive():
            if isinstance(event, LinkLost):
                self._link_lost(event)
            else:
                self._process(event)
        now_s = monotonic_s()
        if now_s >= self._again_at_s:
            self._subscribe()
        if now_s >= self._reconcile_at_s:
            self._reconcile()
        read = partial(read_note, self._access)
        looks = [each.look(self._tasks.by_container[key], read) for key, each in self._started.items()]
        exits = tuple(each for each in looks if each is not None)
        for each in exits:
            del self._started[each.container_id]
            self._tasks.by_container[each.container_id].reported = True
        return exits

    def close(self) -> None:
        identities = [each.identity for each in self._started.values() if each.identity is not None]
        known = any(each.known for each in self._tasks.by_container.values())
        mine = self._taken_over or not self._resumed or not known  # else it has failed to take over what runs
        ends = bool(self._framework_id) and not self._left and mine
        if ends:
            self._call([call("TEARDOWN")])
            with suppress(OSError):  # only `heron logs` needs it
                keep_ended(self.folder, self._framework())
        made = self._link.close(_CLOSE_S if ends else 0.0) and self._subscribed
        if not ends:
            return
        if not made:
            try:
                visit(self._access, framework_info(self.record, self._options, self._framework_id), _CLOSE_S)
            except SchedulerError as error:
                _log.warning("containers may run until the failover time-out of %s: %s", self._framework_id, error)
        wait_for(lambda: not any(each.alive() for each in identities), _GONE_S, _INTERVAL_S)

    def _framework(self) -> FrameworkRecord:
        return FrameworkRecord(self._framework_id, tuple(self._tasks.by_container.values()), self._tasks.launches)

    # -- the master

    def _subscribe(self) -> None:
        self._again_at_s = float("inf")
        self._link.subscribe(framework_info(self.record, self._options, self._framework_id))

    def _link_lost(self, lost: LinkLost) -> None:
        _log.warning("%s", lost.reason)
        ran_s = _RETRY.stable_s if self._subscribed else 0.0
        self._subscribed, self._lost = False, lost
        self._wait_s = next_wait_s(_RETRY, self._wait_s, ran_s)
        self._again_at_s, self._reconcile_at_s = monotonic_s() + self._wait_s, float("inf")

    def _process(self, event: Json) -> None:
        match event.get("type"):
            case "SUBSCRIBED" if not self._framework_id:
                self._framework_id = framework_id(event)
                self._call([])
                self._subscribe()  # now it may outlive its connection
            case "SUBSCRIBED":
                self._subscribed, self._taken_over, self._wait_s = True, True, 0.0
                _log.info("subscribed at %s as framework %s", self._link.leader, self._framework_id)
                self._reconcile()
                if any(self._tasks.waiting()):
                    self._call([call("REVIVE")])
            case "OFFERS":
                self._offers(event)
            case "UPDATE":
                status = fields(fields(event.get("update")).get("status"))
                task_id, state = fields(status.get("task_id")).get("value"), status.get("state")
                _log.log(logging.INFO if status.get("uuid") else logging.DEBUG, "task %s: %s", task_id, state)
                self._call(self._tasks.update(status))
            case "ERROR":
                self._refused(error_message(event))

    def _refused(self, message: str) -> None:
        """The master ends the subscription: another supervisor has the framework, or it is removed, or not allowed."""
        if not self._taken_over and not self._resumed:
            refused = LinkLost(f"mesos refuses the framework: {message}; {_REMEDY}", refused=not self._framework_id)
            self._framework_id = ""  # one without tasks, which has ended with its connection
            self._link_lost(refused)
            return
        self._left = True
        if is_gone(message):
            write_framework(self.folder, FrameworkRecord(launches=self._tasks.launches))
            msg = f"mesos has ended framework {self._framework_id}: {message}"
        elif _SUPERSEDED in message.lower():
            msg = f"another supervisor has framework {self._framework_id}: {message}"
        else:
            again = f"{_REMEDY}; `heron restart {self.record.topology}` starts the supervisor again"
            msg = f"mesos refuses framework {self._framework_id}, and its containers run on: {message}; {again}"
        raise JobLeftError(msg)

    def _reconcile(self) -> None:
        self._reconcile_at_s = monotonic_s() + _RECONCILE_S
        self._call(self._tasks.reconcile())

    def _offers(self, event: Json) -> None:
        started = (self._started.get(each.container_id) for each in self._tasks.waiting())
        waiting = [each.waiting for each in started if each is not None]
        taken = [each.place for each in self._tasks.by_container.values() if each.known]
        decision = decide(
            waiting, decode_offers(event), taken, [*self._options.constraints, *elsewhere(self.folder.avoided())]
        )
        for container_id, refusals in decision.refusals.items():
            self._started[container_id].refusals.update(refusals)
        refuse_s = _REFUSE_S if len(decision.launches) < len(waiting) else _REFUSE_LONG_S
        by_offer = attrgetter("offer.offer_id")
        calls = [
            accept(offer_id, [self._task_info(each) for each in launches], refuse_s)
            for offer_id, launches in groupby(sorted(decision.launches, key=by_offer), key=by_offer)
        ]
        if decision.declined:
            ids = [{"value": each} for each in decision.declined]
            calls.append(call("DECLINE", offer_ids=ids, filters={"refuse_seconds": refuse_s}))
        self._call(calls)

    def _task_info(self, launch: Launch) -> Json:
        task = self._tasks.launch(launch.container_id, launch.offer)
        spec = self._started[launch.container_id].spec
        claim, grace_s = self._tasks.launches, self.record.grace_s
        plain = msgspec.json.encode(LaunchFile(spec, self.record.executor, grace_s=grace_s, claim=claim))
        sealed = self._key.seal(plain, self.record.topology_id, task.task_id)
        return task_info(task, launch, self.record, self._options, sealed)

    def _call(self, calls: list[Json]) -> None:
        """Write the tasks, then make calls; without a framework there is nothing to write."""
        if self._framework_id:
            write_framework(self.folder, self._framework())
        if self._subscribed:
            for each in calls:
                self._link.call({"framework_id": {"value": self._framework_id}, **each})
