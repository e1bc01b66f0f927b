"""The methods of Aurora's test server that change jobs: ``AuroraSchedulerManager``, and quotas of ``AuroraAdmin``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.aurora_parts.interface import aurora, packed, unpacked
from heron_testing_servers.aurora_parts.placement import Wanted, is_preferred, quota_problem
from heron_testing_servers.aurora_parts.reads import (
    AuroraError,
    ReadOnlyScheduler,
    answer,
    difference,
    key_of,
    sanitized,
)
from heron_testing_servers.aurora_parts.tasks import Key
from heron_testing_servers.aurora_parts.updates import JobUpdate, instances_of, ranges_of

__all__ = ["AuroraAdmin"]

_CODE, _STATUS = aurora.ResponseCode, aurora.ScheduleStatus
_MOST_TASKS = 4000  # of a job
_MOST_FAILURES = 20000  # of an update


@dataclass
class AuroraAdmin(ReadOnlyScheduler):
    """The calls of one request of `user`; `permit` raises AuroraError for what it may not do."""

    user: str
    permit: Callable[[str, Key], None]

    def createJob(self, description: Any) -> Any:  # noqa: ANN401
        """Add a job that is not there."""
        key = key_of(description.key)
        self.permit("createJob", key)
        if description.cronSchedule:
            msg = "Cron jobs may only be created/updated by calling scheduleCronJob."
            raise AuroraError(msg)
        config = sanitized(description.taskConfig)
        if key_of(config.job) != key:
            msg = f"Task job key {'/'.join(key_of(config.job))} does not match {'/'.join(key)}"
            raise AuroraError(msg)
        self._demand_no_update(key)
        if self.tasks.active(key):
            msg = f"Job {'/'.join(key)} already exists"
            raise AuroraError(msg)
        self._demand_quota(config, description.instanceCount, description.instanceCount)
        self.tasks.insert(config, range(description.instanceCount))
        return answer()

    def addInstances(self, key: Any, count: int) -> Any:  # noqa: ANN401
        """Add instances like the one that is named."""
        job = key_of(key.jobKey)
        self.permit("addInstances", job)
        if count <= 0:
            msg = "Instance count must be positive."
            raise AuroraError(msg)
        self._demand_no_update(job)
        present = {each.instance: each for each in self.tasks.active(job)}
        if key.instanceId not in present:
            msg = "No active task found for a given instance ID."
            raise AuroraError(msg)
        config = present[key.instanceId].config
        self._demand_quota(config, count, len(present) + count)
        self.tasks.insert(config, range(max(present) + 1, max(present) + 1 + count))
        return answer()

    def killTasks(self, job: Any, instances: list[int] | None, message: str | None) -> Any:  # noqa: ANN401
        """Kill instances of a job, or all."""
        key = key_of(job)
        self.permit("killTasks", key)
        self._demand_no_update(key)
        killed = [
            each
            for each in self.tasks.active(key)
            if each.status != _STATUS.KILLING and (not instances or each.instance in instances)
        ]
        for each in killed:
            self.tasks.stop(each, _STATUS.KILLING, f"Killed by {self.user}{f'. {message}' if message else ''}")
        return answer("" if killed else "No tasks to kill.")

    def restartShards(self, job: Any, shardIds: list[int]) -> Any:  # noqa: ANN401
        """Restart instances of a job."""
        key = key_of(job)
        self.permit("restartShards", key)
        self._demand_no_update(key)
        found = [each for each in self.tasks.active(key) if each.instance in shardIds]
        if not shardIds or len(found) != len(set(shardIds)):
            msg = "Not all requested shards are active."
            raise AuroraError(msg)
        for each in found:
            self.tasks.stop(each, _STATUS.RESTARTING, f"Restarted by {self.user}")
        return answer()

    def startJobUpdate(self, request: Any, message: str | None) -> Any:  # noqa: ANN401
        """Begin to change a job."""
        key = key_of(request.taskConfig.job)
        self.permit("startJobUpdate", key)
        _demand_settings(request)
        request.taskConfig = sanitized(request.taskConfig)
        before, _, after = difference(request, self.tasks)
        scope = set(instances_of(request.settings.updateOnlyTheseInstances))
        if outside := scope - set(before) - set(after):
            msg = (
                "The update request attempted to update specific instances, but some are irrelevant to the update and "
                f"current job state: {sorted(outside)}"
            )
            raise AuroraError(msg)
        if scope:
            before, after = ({at: config for at, config in each.items() if at in scope} for each in (before, after))
        if not before and not after:
            return answer("Job is unchanged by proposed update.")
        if running := self.updates.active(key):
            return self._in_progress(running)
        freed = sum((Wanted.by(each) for each in before.values() if is_preferred(each)), Wanted())
        self._demand_quota(request.taskConfig, len(after), request.instanceCount, freed)
        details = self._details(request, before, after)
        self.updates.start(details, self.user, message)
        summary = details.update.summary
        result = aurora.StartJobUpdateResult(key=summary.key, updateSummary=summary)
        return answer(startJobUpdateResult=result)

    def pauseJobUpdate(self, key: Any, message: str | None) -> Any:  # noqa: ANN401
        """Let an update wait."""
        return self._order("pauseJobUpdate", "pause", key, message)

    def resumeJobUpdate(self, key: Any, message: str | None) -> Any:  # noqa: ANN401
        """Let a paused update go on."""
        return self._order("resumeJobUpdate", "resume", key, message)

    def abortJobUpdate(self, key: Any, message: str | None) -> Any:  # noqa: ANN401
        """End an update where it is."""
        return self._order("abortJobUpdate", "abort", key, message)

    def rollbackJobUpdate(self, key: Any, message: str | None) -> Any:  # noqa: ANN401
        """Turn an update back."""
        return self._order("rollbackJobUpdate", "rollback", key, message)

    def pulseJobUpdate(self, key: Any) -> Any:  # noqa: ANN401
        """Let an update go on that waits for pulses."""
        self.permit("pulseJobUpdate", key_of(key.job))
        update = self._update(key)
        if update.is_active:
            self.updates.pulse(update)
        status = aurora.JobUpdatePulseStatus.OK if update.is_active else aurora.JobUpdatePulseStatus.FINISHED
        return answer(pulseJobUpdateResult=aurora.PulseJobUpdateResult(status=status))

    def setQuota(self, ownerRole: str, quota: Any) -> Any:  # noqa: ANN401
        """Set the quota of a role; it lasts until the server is restarted."""
        self.permit("setQuota", (ownerRole, "", ""))
        amounts = Wanted.by(quota)
        if not quota.resources:
            amounts = Wanted(quota.numCpus, quota.ramMb, quota.diskMb)
        self.quotas[ownerRole] = amounts
        return answer()

    def _order(self, method: str, wanted: str, key: Any, message: str | None) -> Any:  # noqa: ANN401
        self.permit(method, key_of(key.job))
        update = self._update(key)
        if not self.updates.order(update, wanted, self.user, message):
            state = next(name for name, value in vars(aurora.JobUpdateStatus).items() if value == update.status)
            msg = f"Unable to {wanted} an update in state {state}"
            raise AuroraError(msg)
        return answer()

    def _update(self, key: Any) -> JobUpdate:  # noqa: ANN401
        update = self.updates.updates.get(key.id)
        if update is None or update.key != key_of(key.job):
            msg = f"Update does not exist: {key}"
            raise AuroraError(msg)
        return update

    def _in_progress(self, running: JobUpdate) -> Any:  # noqa: ANN401
        summary = running.details.update.summary
        message = "An active update already exists for this job, please terminate it before starting another."
        result = aurora.StartJobUpdateResult(key=summary.key, updateSummary=summary)
        return answer(message, _CODE.INVALID_REQUEST, startJobUpdateResult=result)

    def _demand_no_update(self, key: Key) -> None:
        if self.updates.active(key) is not None:
            msg = "Job is currently updating"
            raise AuroraError(msg, _CODE.JOB_UPDATING_ERROR)

    def _demand_quota(self, config: Any, added: int, total: int, freed: Wanted | None = None) -> None:  # noqa: ANN401
        """Raise AuroraError if a job would have too many tasks, or its role too much."""
        if not 0 < total <= _MOST_TASKS:
            msg = f"Instance count must be between 1 and {_MOST_TASKS} inclusive."
            raise AuroraError(msg)
        if not is_preferred(config):
            return
        role = config.job.role
        mine = [each.config for each in self.tasks.active() if each.key[0] == role and is_preferred(each.config)]
        used = sum((Wanted.by(each) for each in (*mine, *([config] * added))), Wanted())
        less = freed or Wanted()
        used = Wanted(used.cpus - less.cpus, used.ram - less.ram, used.disk - less.disk)
        if problem := quota_problem(self.quota(role), used):
            msg = f"Insufficient resource quota: {problem}"
            raise AuroraError(msg)

    def _details(self, request: Any, before: dict[int, Any], after: dict[int, Any]) -> Any:  # noqa: ANN401
        groups: dict[str, tuple[Any, list[int]]] = {}
        for instance, config in before.items():
            groups.setdefault(packed(config), (config, []))[1].append(instance)
        initial = [aurora.InstanceTaskConfig(task, ranges_of(instances)) for task, instances in groups.values()]
        desired = aurora.InstanceTaskConfig(request.taskConfig, ranges_of(after)) if after else None
        at = round(wall_s() * 1000)
        summary = aurora.JobUpdateSummary(
            key=aurora.JobUpdateKey(job=request.taskConfig.job, id=str(uuid.uuid4())),
            user=self.user,
            state=aurora.JobUpdateState(createdTimestampMs=at, lastModifiedTimestampMs=at),
            metadata=request.metadata,
        )
        instructions = aurora.JobUpdateInstructions(
            initialState=initial, desiredState=desired, settings=request.settings
        )
        update = aurora.JobUpdate(summary=summary, instructions=instructions)
        details = aurora.JobUpdateDetails(update=update, updateEvents=[], instanceEvents=[])
        return unpacked("JobUpdateDetails", packed(details))


def _demand_settings(request: Any) -> None:  # noqa: ANN401
    """Raise AuroraError for settings that Aurora refuses."""
    settings = request.settings
    sizes = settings.updateGroupSize or 0
    if settings.updateStrategy is not None:
        strategy = settings.updateStrategy
        one = strategy.queueStrategy or strategy.batchStrategy
        sizes = one.groupSize if one is not None else min(strategy.varBatchStrategy.groupSizes, default=0)
    failures = settings.maxPerInstanceFailures or 0
    problems = {
        "Updates are not supported for non-service tasks.": not request.taskConfig.isService,
        "updateGroupSize must be positive.": sizes <= 0,
        "maxPerInstanceFailures must be non-negative.": failures < 0,
        "maxFailedInstances must be non-negative.": (settings.maxFailedInstances or 0) < 0,
        "Your update allows too many failures to occur, consider decreasing the per-instance failures or "
        "maxFailedInstances.": failures * request.instanceCount > _MOST_FAILURES,
        "minWaitInInstanceRunningMs must be non-negative.": (settings.minWaitInInstanceRunningMs or 0) < 0,
        "blockIfNoPulsesAfterMs must be positive.": (settings.blockIfNoPulsesAfterMs or 0) < 0,
    }
    for message, found in problems.items():
        if found:
            raise AuroraError(message)
