"""The methods of Aurora's test server that change nothing: the service ``ReadOnlyScheduler``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heron_testing_servers.aurora_parts.interface import aurora, canonical, packed, unpacked
from heron_testing_servers.aurora_parts.placement import TIERS, Wanted, is_preferred
from heron_testing_servers.aurora_parts.tasks import ACTIVE, Key, Task, TaskStore
from heron_testing_servers.aurora_parts.updates import JobUpdate, UpdateStore, ranges_of

__all__ = ["AuroraError", "Quotas", "ReadOnlyScheduler", "answer", "difference", "key_of", "sanitized"]

_CODE, _STATUS = aurora.ResponseCode, aurora.ScheduleStatus
_DEFAULT_TIER = "preemptible"


class AuroraError(Exception):
    """An answer that is not OK, in Aurora's words."""

    def __init__(self, message: str, code: int = _CODE.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


Quotas = dict[str, Wanted]
"""The quotas by role; that of ``*`` is for all others."""


def answer(message: str = "", code: int = _CODE.OK, **result: object) -> Any:  # noqa: ANN401 - a struct of thrift
    """Return a `Response`; a result is given by the name of its field."""
    found = aurora.Result(**result) if result else None
    server = aurora.ServerInfo(clusterName="testing", statsUrlPrefix="")
    details = [aurora.ResponseDetail(message=message)] if message else []
    return aurora.Response(responseCode=code, serverInfo=server, result=found, details=details)


def key_of(job: Any) -> Key:  # noqa: ANN401
    """Return a `JobKey`. Raises AuroraError when a part of it is missing."""
    if job is None or not (job.role and job.environment and job.name):
        msg = f"Job key is invalid: {job}"
        raise AuroraError(msg)
    return job.role, job.environment, job.name


def sanitized(config: Any) -> Any:  # noqa: ANN401
    """Return a `TaskConfig` with its defaults. Raises AuroraError when it cannot run."""
    config = unpacked("TaskConfig", packed(config))
    key = key_of(config.job)
    for name, part in zip(("role", "environment", "name"), key, strict=True):
        if not all(letter.isalnum() or letter in "_-." for letter in part):
            msg = f"Job {name} contains illegal characters: {part}"
            raise AuroraError(msg)
    wanted = Wanted.by(config)
    for name in ("cpus", "ram", "disk"):
        if getattr(wanted, name) <= 0:
            msg = f"Task must have a positive amount of {name}"
            raise AuroraError(msg)
    if config.executorConfig is None or not config.executorConfig.data:
        msg = "Configuration must have an executor config"
        raise AuroraError(msg)
    if config.container is not None and config.container.docker is not None:
        msg = "Container type DOCKER is disabled."
        raise AuroraError(msg)
    if config.tier is None:
        config.tier = "preferred" if config.production else _DEFAULT_TIER
    if config.tier not in TIERS:
        msg = f"Tier '{config.tier}' does not exist."
        raise AuroraError(msg)
    config.production = is_preferred(config)
    return config


def difference(request: Any, tasks: TaskStore) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:  # noqa: ANN401
    """Return the configs that an update replaces, those that it leaves, and those that it brings, by instance."""
    current = {each.instance: each.config for each in tasks.active(key_of(request.taskConfig.job))}
    target = dict.fromkeys(range(request.instanceCount), request.taskConfig)
    same = {
        each: config
        for each, config in current.items()
        if each in target and canonical(config) == canonical(target[each])
    }
    return (
        {each: config for each, config in current.items() if each not in same},
        same,
        {each: config for each, config in target.items() if each not in same},
    )


@dataclass
class ReadOnlyScheduler:
    """The reads of one request."""

    tasks: TaskStore
    updates: UpdateStore
    quotas: Quotas

    def getRoleSummary(self) -> Any:  # noqa: ANN401
        """Return the number of jobs by role."""
        jobs = {each.key for each in self.tasks.tasks.values()}
        roles = {role: sum(key[0] == role for key in jobs) for role, _, _ in jobs}
        found = [aurora.RoleSummary(role=role, jobCount=count, cronJobCount=0) for role, count in sorted(roles.items())]
        return answer(roleSummaryResult=aurora.RoleSummaryResult(summaries=found))

    def getJobSummary(self, role: str | None) -> Any:  # noqa: ANN401
        """Return the jobs with the numbers of their tasks by state."""
        found = []
        for key in sorted({each.key for each in self.tasks.tasks.values() if role in (None, "", each.key[0])}):
            states = [each.status for each in self.tasks.tasks.values() if each.key == key]
            waiting = sum(each in {_STATUS.PENDING, _STATUS.INIT, _STATUS.THROTTLED} for each in states)
            stats = aurora.JobStats(
                activeTaskCount=sum(each in ACTIVE for each in states) - waiting,
                finishedTaskCount=states.count(_STATUS.FINISHED),
                failedTaskCount=sum(states.count(each) for each in (_STATUS.FAILED, _STATUS.LOST)),
                pendingTaskCount=waiting,
            )
            found.append(aurora.JobSummary(job=self._job(key), stats=stats))
        return answer(jobSummaryResult=aurora.JobSummaryResult(summaries=found))

    def getTasksStatus(self, query: Any) -> Any:  # noqa: ANN401
        """Return the tasks that match."""
        found = [each.scheduled for each in self._matching(query)]
        return answer(scheduleStatusResult=aurora.ScheduleStatusResult(tasks=found))

    def getTasksWithoutConfigs(self, query: Any) -> Any:  # noqa: ANN401
        """Return the tasks that match, without the configs of their executors."""
        found = [unpacked("ScheduledTask", packed(each.scheduled)) for each in self._matching(query)]
        for each in found:
            each.assignedTask.task.executorConfig = None
        return answer(scheduleStatusResult=aurora.ScheduleStatusResult(tasks=found))

    def getPendingReason(self, query: Any) -> Any:  # noqa: ANN401
        """Return why tasks wait."""
        if query.slaveHosts or query.statuses:
            msg = f"Statuses or slaveHosts are not supported in {query}"
            raise AuroraError(msg)
        waiting = [each for each in self._matching(query) if each.status == _STATUS.PENDING]
        reasons = [aurora.PendingReason(taskId=each.id, reason=self.tasks.pending_reason(each)) for each in waiting]
        return answer(getPendingReasonResult=aurora.GetPendingReasonResult(reasons=reasons))

    def getConfigSummary(self, job: Any) -> Any:  # noqa: ANN401
        """Return the configs of a job with their instances."""
        configs = {each.instance: each.config for each in self.tasks.active(key_of(job))}
        summary = aurora.ConfigSummary(key=job, groups=_groups(configs))
        return answer(configSummaryResult=aurora.ConfigSummaryResult(summary=summary))

    def getJobs(self, ownerRole: str | None) -> Any:  # noqa: ANN401
        """Return the jobs that have active tasks."""
        keys = sorted({each.key for each in self.tasks.active() if ownerRole in (None, "", each.key[0])})
        return answer(getJobsResult=aurora.GetJobsResult(configs=[self._job(each) for each in keys]))

    def getQuota(self, ownerRole: str) -> Any:  # noqa: ANN401
        """Return the quota of a role, and what it has of it."""
        mine = [each.config for each in self.tasks.active() if each.key[0] == ownerRole]
        used = {
            preferred: sum((Wanted.by(each) for each in mine if is_preferred(each) == preferred), Wanted())
            for preferred in (True, False)
        }
        found = aurora.GetQuotaResult(
            quota=_aggregate(self.quota(ownerRole)),
            prodSharedConsumption=_aggregate(used[True]),
            nonProdSharedConsumption=_aggregate(used[False]),
            prodDedicatedConsumption=_aggregate(Wanted()),
            nonProdDedicatedConsumption=_aggregate(Wanted()),
        )
        return answer(getQuotaResult=found)

    def populateJobConfig(self, description: Any) -> Any:  # noqa: ANN401
        """Return a config with its defaults."""
        config = sanitized(description.taskConfig)
        return answer(populateJobResult=aurora.PopulateJobResult(taskConfig=config))

    def getJobUpdateSummaries(self, jobUpdateQuery: Any) -> Any:  # noqa: ANN401
        """Return the updates that match, the newest first."""
        found = [each.details.update.summary for each in self._updates(jobUpdateQuery)]
        return answer(getJobUpdateSummariesResult=aurora.GetJobUpdateSummariesResult(updateSummaries=found))

    def getJobUpdateDetails(self, key: Any, query: Any) -> Any:  # noqa: ANN401
        """Return one update by its key, or all that match."""
        if key is None:
            found = [each.details for each in self._updates(query)]
            return answer(getJobUpdateDetailsResult=aurora.GetJobUpdateDetailsResult(detailsList=found))
        update = self.updates.updates.get(key.id)
        if update is None or update.key != key_of(key.job):
            msg = f"Invalid update: {key}"
            raise AuroraError(msg)
        result = aurora.GetJobUpdateDetailsResult(details=update.details, detailsList=[update.details])
        return answer(getJobUpdateDetailsResult=result)

    def getJobUpdateDiff(self, request: Any) -> Any:  # noqa: ANN401
        """Return what an update would do."""
        request.taskConfig = sanitized(request.taskConfig)
        before, same, after = difference(request, self.tasks)
        result = aurora.GetJobUpdateDiffResult(
            add=_groups({each: config for each, config in after.items() if each not in before}),
            remove=_groups({each: config for each, config in before.items() if each not in after}),
            update=_groups({each: config for each, config in before.items() if each in after}),
            unchanged=_groups(same),
        )
        return answer(getJobUpdateDiffResult=result)

    def getTierConfigs(self) -> Any:  # noqa: ANN401
        """Return the tiers."""
        tiers = [aurora.TierConfig(name=name, settings=settings) for name, settings in TIERS.items()]
        result = aurora.GetTierConfigResult(defaultTierName=_DEFAULT_TIER, tiers=tiers)
        return answer(getTierConfigResult=result)

    def quota(self, role: str) -> Wanted:
        """Return the quota of a role."""
        return self.quotas.get(role, self.quotas.get("*", Wanted()))

    def _job(self, key: Key) -> Any:  # noqa: ANN401
        mine = [each for each in self.tasks.tasks.values() if each.key == key]
        active = [each for each in mine if each.status in ACTIVE] or mine
        newest = max(active, key=lambda each: each.since_s)
        return aurora.JobConfiguration(
            key=newest.config.job, owner=newest.config.owner, taskConfig=newest.config, instanceCount=len(active)
        )

    def _matching(self, query: Any) -> list[Task]:  # noqa: ANN401
        keys = {key_of(each) for each in query.jobKeys or ()}
        wanted = (
            (query.role, lambda each: each.key[0] == query.role),
            (query.environment, lambda each: each.key[1] == query.environment),
            (query.jobName, lambda each: each.key[2] == query.jobName),
            (keys, lambda each: each.key in keys),
            (query.taskIds, lambda each: each.id in query.taskIds),
            (query.statuses, lambda each: each.status in query.statuses),
            (query.instanceIds, lambda each: each.instance in query.instanceIds),
            (query.slaveHosts, lambda each: each.scheduled.assignedTask.slaveHost in query.slaveHosts),
        )
        found = [each for each in self.tasks.tasks.values() if all(meets(each) for given, meets in wanted if given)]
        return _page(sorted(found, key=lambda each: each.order), query)

    def _updates(self, query: Any) -> list[JobUpdate]:  # noqa: ANN401
        wanted = (
            (query.role, lambda each: each.key[0] == query.role),
            (query.key, lambda each: each.id == query.key.id and each.key == key_of(query.key.job)),
            (query.jobKey, lambda each: each.key == key_of(query.jobKey)),
            (query.user, lambda each: each.details.update.summary.user == query.user),
            (query.updateStatuses, lambda each: each.status in query.updateStatuses),
        )
        found = [each for each in self.updates.updates.values() if all(meets(each) for given, meets in wanted if given)]
        return _page(found[::-1], query)


def _page(found: list[Any], query: Any) -> list[Any]:  # noqa: ANN401
    offset = query.offset or 0
    return found[offset : offset + query.limit] if query.limit else found[offset:]


def _groups(configs: dict[int, Any]) -> list[Any]:
    groups: dict[str, tuple[Any, list[int]]] = {}
    for instance, config in configs.items():
        groups.setdefault(repr(canonical(config)), (config, []))[1].append(instance)
    return [aurora.ConfigGroup(config=config, instances=ranges_of(instances)) for config, instances in groups.values()]


def _aggregate(amount: Wanted) -> Any:  # noqa: ANN401
    cpus, ram, disk = float(amount.cpus), int(amount.ram), int(amount.disk)
    resources: Iterable[Any] = (
        aurora.Resource(numCpus=cpus), aurora.Resource(ramMb=ram), aurora.Resource(diskMb=disk)
    )  # fmt: skip
    return aurora.ResourceAggregate(numCpus=cpus, ramMb=ram, diskMb=disk, resources=list(resources))
