"""Job updates of Aurora's test server: instance by instance to another config, watched, and back if too many fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.aurora_parts.interface import aurora, canonical, packed, unpacked
from heron_testing_servers.aurora_parts.tasks import ACTIVE, Key, Task, TaskStore
from heron_testing_servers.http_service import read_json, write_json

__all__ = ["JobUpdate", "UpdateStore", "instances_of", "ranges_of"]

_STATUS, _TASK, _ACTION = aurora.JobUpdateStatus, aurora.ScheduleStatus, aurora.JobUpdateAction
_ROLLING = {_STATUS.ROLLING_FORWARD, _STATUS.ROLLING_BACK}
_PAUSED = {_STATUS.ROLLING_FORWARD: _STATUS.ROLL_FORWARD_PAUSED, _STATUS.ROLLING_BACK: _STATUS.ROLL_BACK_PAUSED}
_AWAITING = {
    _STATUS.ROLLING_FORWARD: _STATUS.ROLL_FORWARD_AWAITING_PULSE,
    _STATUS.ROLLING_BACK: _STATUS.ROLL_BACK_AWAITING_PULSE,
}
_ROLLED = {each: rolling for kind in (_PAUSED, _AWAITING) for rolling, each in kind.items()}
_ACTIVE = {*_ROLLING, *_ROLLED}


@dataclass(slots=True)
class JobUpdate:
    """An update: what clients see of it, and how far its instances are."""

    details: Any
    working: dict[int, int] = field(default_factory=dict)
    """The instances that change now, with their failures."""
    done: dict[int, bool] = field(default_factory=dict)
    """The instances that are ready in this direction: whether they have succeeded."""
    seen: list[str] = field(default_factory=list)
    """The tasks whose failure was counted."""
    pulse_at_s: float = 0.0

    @property
    def key(self) -> Key:
        """The key of its job."""
        job = self.details.update.summary.key.job
        return job.role, job.environment, job.name

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.details.update.summary.key.id)

    @property
    def status(self) -> int:
        """Its `JobUpdateStatus`."""
        return int(self.details.update.summary.state.status)

    @property
    def is_active(self) -> bool:
        """Return whether it still may change tasks."""
        return self.status in _ACTIVE

    @property
    def settings(self) -> Any:  # noqa: ANN401 - a struct of thrift
        """Its `JobUpdateSettings`."""
        return self.details.update.instructions.settings

    @property
    def watch_s(self) -> float:
        """How long an instance must have run, in seconds."""
        return float(self.settings.minWaitInInstanceRunningMs or 0) / 1000

    @property
    def goes_back(self) -> bool:
        """Return whether its direction is back."""
        return bool(self.status == _STATUS.ROLLING_BACK)

    def before(self) -> dict[int, Any]:
        """Return the configs that its instances had."""
        states = self.details.update.instructions.initialState or ()
        return {instance: each.task for each in states for instance in instances_of(each.instances)}

    def after(self) -> dict[int, Any]:
        """Return the configs that its instances are to have."""
        desired = self.details.update.instructions.desiredState
        return {} if desired is None else dict.fromkeys(instances_of(desired.instances), desired.task)

    def change(self, status: int, user: str | None = None, message: str | None = None) -> None:
        """Note a new state."""
        at = round(wall_s() * 1000)
        state = self.details.update.summary.state
        state.status, state.lastModifiedTimestampMs = status, at
        event = aurora.JobUpdateEvent(status=status, timestampMs=at, user=user, message=message)
        self.details.updateEvents.append(event)

    def note(self, instance: int, forward: int, back: int) -> None:
        """Note what has happened to an instance, by direction."""
        action = back if self.goes_back else forward
        at = round(wall_s() * 1000)
        self.details.instanceEvents.append(aurora.JobInstanceUpdateEvent(instance, at, action))


class UpdateStore:
    """All updates, in a file. The lock of the server is held in every call."""

    def __init__(self, folder: Path, tasks: TaskStore) -> None:
        self.updates: dict[str, JobUpdate] = {}
        self._tasks = tasks
        self._place = folder / "updates.json"
        for text, working, done, seen, pulse_at_s in read_json(self._place, []):
            counts = {int(instance): failures for instance, failures in working.items()}
            ready = {int(instance): success for instance, success in done.items()}
            update = JobUpdate(unpacked("JobUpdateDetails", text), counts, ready, seen, pulse_at_s)
            self.updates[update.id] = update

    def save(self) -> None:
        """Write the file."""
        kept = [
            (packed(each.details), each.working, each.done, each.seen, each.pulse_at_s)
            for each in self.updates.values()
        ]
        write_json(self._place, kept)

    def active(self, key: Key) -> JobUpdate | None:
        """Return the active update of a job."""
        return next((each for each in self.updates.values() if each.key == key and each.is_active), None)

    def start(self, details: Any, user: str, message: str | None) -> None:  # noqa: ANN401
        """Start an update."""
        update = JobUpdate(details)
        self.updates[update.id] = update
        pulsed = bool(update.settings.blockIfNoPulsesAfterMs)
        update.change(_STATUS.ROLL_FORWARD_AWAITING_PULSE if pulsed else _STATUS.ROLLING_FORWARD, user, message)
        self.save()

    def order(self, update: JobUpdate, wanted: str, user: str, message: str | None) -> bool:
        """Pause, resume, abort or roll back; return whether the state allows it."""
        rolling = _ROLLED.get(update.status, update.status)
        allowed = {
            "pause": (_PAUSED.get(rolling), update.status not in _PAUSED.values()),
            "resume": (rolling, update.status in _PAUSED.values()),
            "abort": (_STATUS.ABORTED, True),
            "rollback": (_STATUS.ROLLING_BACK, rolling == _STATUS.ROLLING_FORWARD),
        }
        status, possible = allowed[wanted]
        if not (update.is_active and possible and status is not None):
            return False
        self._turn(update, status, user, message)
        return True

    def pulse(self, update: JobUpdate) -> None:
        """Let an update that waits for pulses go on for its time."""
        update.pulse_at_s = wall_s()
        if update.status in _AWAITING.values():
            update.change(_ROLLED[update.status])
        self.save()

    def tick(self) -> None:
        """Do what is due."""
        for update in self.updates.values():
            limit_ms = update.settings.blockIfNoPulsesAfterMs
            if update.status in _ROLLING and limit_ms and wall_s() - update.pulse_at_s > limit_ms / 1000:
                update.change(_AWAITING[update.status], message="Pulses from external service were not received")
                self.save()
            elif update.status in _ROLLING:
                self._advance(update)

    def _turn(self, update: JobUpdate, status: int, user: str | None = None, message: str | None = None) -> None:
        if status == _STATUS.ROLLING_BACK and update.status != _STATUS.ROLL_BACK_PAUSED:
            changed = [*update.done, *update.working]
            update.done = {each: True for each in {*update.before(), *update.after()} if each not in changed}
            update.working = {}
        update.change(status, user, message)
        self.save()

    def _advance(self, update: JobUpdate) -> None:
        targets = update.before() if update.goes_back else update.after()
        everything = sorted({*update.before(), *update.after()}, reverse=update.goes_back)
        for instance in list(update.working):
            self._look_at(update, instance, targets.get(instance))
        failed = sum(not success for success in update.done.values())
        if failed > (update.settings.maxFailedInstances or 0):
            back = update.settings.rollbackOnFailure and not update.goes_back
            self._turn(update, _STATUS.ROLLING_BACK if back else _STATUS.FAILED, None, "failed instances")
        elif len(update.done) == len(everything) and not update.working:
            self._turn(update, _STATUS.ROLLED_BACK if update.goes_back else _STATUS.ROLLED_FORWARD)
        elif not (update.working and _in_batches(update.settings)):
            waiting = [each for each in everything if each not in update.done and each not in update.working]
            for instance in waiting[: _group_size(update.settings, len(update.done)) - len(update.working)]:
                update.working[instance] = 0
                update.note(instance, _ACTION.INSTANCE_UPDATING, _ACTION.INSTANCE_ROLLING_BACK)
                self._look_at(update, instance, targets.get(instance))
                self.save()

    def _look_at(self, update: JobUpdate, instance: int, target: Any) -> None:  # noqa: ANN401
        """Bring one instance nearer to its target, or note that it is there."""
        task = next((each for each in self._tasks.active(update.key) if each.instance == instance), None)
        if target is None:
            if task is None:
                self._finish(update, instance, success=True)
            else:
                self._stop(task)
        elif task is None:
            self._tasks.insert(target, [instance])
        elif canonical(task.config) != canonical(target):
            self._stop(task)
        elif self._has_failed_too_often(update, instance, task):
            self._finish(update, instance, success=False)
        elif task.status == _TASK.RUNNING and wall_s() - task.since_s >= update.watch_s:
            self._finish(update, instance, success=True)

    def _has_failed_too_often(self, update: JobUpdate, instance: int, task: Task) -> bool:
        """Count the earlier tasks of the instance with this config that have ended by themselves."""
        begun_ms = update.details.update.summary.state.createdTimestampMs
        ended = self._tasks.tasks.get(task.scheduled.ancestorId or "")
        while ended is not None and ended.id not in update.seen and canonical(ended.config) == canonical(task.config):
            update.seen.append(ended.id)
            update.working[instance] += ended.scheduled.taskEvents[-1].timestamp >= begun_ms
            ended = self._tasks.tasks.get(ended.scheduled.ancestorId or "")
        return update.working[instance] > (update.settings.maxPerInstanceFailures or 0)

    def _finish(self, update: JobUpdate, instance: int, *, success: bool) -> None:
        del update.working[instance]
        update.done[instance] = success
        if success:
            update.note(instance, _ACTION.INSTANCE_UPDATED, _ACTION.INSTANCE_ROLLED_BACK)
        else:
            update.note(instance, _ACTION.INSTANCE_UPDATE_FAILED, _ACTION.INSTANCE_ROLLBACK_FAILED)
        self.save()

    def _stop(self, task: Task) -> None:
        if task.status in ACTIVE and task.status != _TASK.KILLING:
            self._tasks.stop(task, _TASK.KILLING, "Killed for job update")


def _in_batches(settings: Any) -> bool:  # noqa: ANN401
    """Return whether a group must be ready before the next one begins."""
    strategy = settings.updateStrategy
    return bool(settings.waitForBatchCompletion if strategy is None else strategy.queueStrategy is None)


def _group_size(settings: Any, done: int) -> int:  # noqa: ANN401
    """Return how many instances may change at once."""
    strategy = settings.updateStrategy
    if strategy is None:
        return int(settings.updateGroupSize)
    if strategy.varBatchStrategy is not None:
        sizes = list(strategy.varBatchStrategy.groupSizes)
        while len(sizes) > 1 and done >= sizes[0]:
            done -= sizes.pop(0)
        return int(sizes[0])
    return int((strategy.queueStrategy or strategy.batchStrategy).groupSize)


def instances_of(ranges: Iterable[Any] | None) -> list[int]:
    """Return the numbers in ranges."""
    return sorted({number for each in ranges or () for number in range(each.first, each.last + 1)})


def ranges_of(instances: Iterable[int]) -> list[Any]:
    """Return numbers as ranges."""
    found: list[Any] = []
    for each in sorted(instances):
        if found and found[-1].last == each - 1:
            found[-1].last = each
        else:
            found.append(aurora.Range(first=each, last=each))
    return found
