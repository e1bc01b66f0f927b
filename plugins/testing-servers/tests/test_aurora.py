"""The Aurora server keeps the published interface, as far as its README says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from thriftpy2.protocol import apache_json, binary
from thriftpy2.thrift import TClient
from thriftpy2.transport import memory

from heron_testing.waiting import Eventually
from heron_testing_servers.aurora import AuroraCluster
from heron_testing_servers.aurora_parts.interface import BINARY, JSON
from heron_testing_servers.aurora_parts.interface import aurora as interface
from heron_testing_servers.http_service import Fault

pytestmark = pytest.mark.servers

STATUS, CODE, UPDATE, ACTION = (
    interface.ScheduleStatus,
    interface.ResponseCode,
    interface.JobUpdateStatus,
    interface.JobUpdateAction,
)
PROTOCOLS: dict[str, Any] = {BINARY: binary.TBinaryProtocol, JSON: apache_json.TApacheJSONProtocol}
Buffer: Any = memory.TMemoryBuffer
FOREVER = "exec sleep 600"


class Refused(Exception):
    """An answer of HTTP that is not 200."""


class Aurora:
    """A client of one job, `role`/test/job."""

    http: ClassVar[httpx.Client]

    def __init__(self, cluster: AuroraCluster, role: str, auth: tuple[str, str] | None = None) -> None:
        self.cluster = cluster
        self.job = interface.JobKey(role=role, environment="test", name="job")
        self.auth = httpx.BasicAuth(*auth) if auth else httpx.Auth()
        self.media_type = BINARY

    def call(self, method: str, **arguments: object) -> Any:  # noqa: ANN401 - a struct of thrift
        sent = Buffer()
        protocol = PROTOCOLS[self.media_type](sent)
        TClient(interface.AuroraAdmin, protocol, protocol)._send(method, **arguments)
        headers = {"content-type": self.media_type, "accept": self.media_type}
        url = f"{self.cluster.url}/api"
        answer = self.http.post(url, content=sent.getvalue(), headers=headers, auth=self.auth)
        if answer.status_code != 200:
            raise Refused(answer.status_code, answer.headers.get("www-authenticate"))
        assert answer.headers["content-type"] == self.media_type
        protocol = PROTOCOLS[self.media_type](Buffer(answer.content))
        return TClient(interface.AuroraAdmin, protocol)._recv(method)

    def config(self, command: str = FOREVER, cpus: float = 1.0, **more: object) -> Any:  # noqa: ANN401
        data = {"task": {"processes": [{"name": "main", "cmdline": command, "min_duration": 0}]}}
        amounts = [interface.Resource(numCpus=cpus), interface.Resource(ramMb=64), interface.Resource(diskMb=64)]
        fields: dict[str, Any] = {
            "isService": True,
            "maxTaskFailures": 1,
            "tier": "preferred",
            "constraints": [],
            **more,
        }
        executor = interface.ExecutorConfig(name="AuroraExecutor", data=json.dumps(data))
        ports = [interface.Resource(namedPort="http")]
        return interface.TaskConfig(job=self.job, resources=amounts + ports, executorConfig=executor, **fields)

    def create(self, command: str = FOREVER, count: int = 1, **more: Any) -> Any:  # noqa: ANN401
        job = interface.JobConfiguration(key=self.job, taskConfig=self.config(command, **more), instanceCount=count)
        return self.call("createJob", description=job)

    def tasks(self, *statuses: int) -> list[Any]:
        query = interface.TaskQuery(jobKeys=[self.job], statuses=list(statuses))
        return list(self.call("getTasksStatus", query=query).result.scheduleStatusResult.tasks)

    def running(self) -> dict[int, Any]:
        return {each.assignedTask.instanceId: each for each in self.tasks(STATUS.RUNNING)}

    def update(self, config: Any, count: int, **more: Any) -> Any:  # noqa: ANN401
        settings = {
            "updateGroupSize": 1,
            "maxPerInstanceFailures": 0,
            "maxFailedInstances": 0,
            "rollbackOnFailure": True,
        }
        chosen = interface.JobUpdateSettings(**{**settings, "minWaitInInstanceRunningMs": 0, **more})
        request = interface.JobUpdateRequest(taskConfig=config, instanceCount=count, settings=chosen)
        return self.call("startJobUpdate", request=request, message="by a test")

    def details(self) -> Any:  # noqa: ANN401
        """Return the newest update."""
        query = interface.JobUpdateQuery(jobKey=self.job)
        return self.call("getJobUpdateDetails", key=None, query=query).result.getJobUpdateDetailsResult.detailsList[0]

    def update_status(self) -> int:
        return int(self.details().update.summary.state.status)

    def log(self, task: Any, name: str = "stdout") -> str:  # noqa: ANN401
        assigned = task.assignedTask
        url = self.cluster.hosts()[assigned.slaveId]["url"]
        place = f"{url}/logdata/{assigned.taskId}/main/0/{name}"
        return str(self.http.get(place, params={"offset": 0}).json().get("data", ""))


def words(answer: Any) -> tuple[int, str]:  # noqa: ANN401
    """Return the code and the message of an answer."""
    return answer.responseCode, "".join(each.message for each in answer.details)


def events(task: Any) -> list[int]:  # noqa: ANN401
    return [each.status for each in task.taskEvents]


@pytest.fixture(scope="module", autouse=True)
def http() -> Iterator[None]:
    """One client for all tests, because it takes long to make one."""
    with httpx.Client(timeout=60) as Aurora.http:
        yield


@pytest.fixture
def job(aurora: AuroraCluster, request: pytest.FixtureRequest) -> Iterator[Aurora]:
    """A job in a role of the test's own, which is killed."""
    made = Aurora(aurora, re.sub(r"\W", "_", request.node.name)[:60])
    yield made
    found = made.call("getJobUpdateSummaries", jobUpdateQuery=interface.JobUpdateQuery(role=made.job.role))
    for each in found.result.getJobUpdateSummariesResult.updateSummaries:
        made.call("abortJobUpdate", key=each.key, message=None)
    made.call("killTasks", job=made.job, instances=None, message=None)


Clusters = Callable[..., AuroraCluster]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Clusters]:
    """Make clusters of the test's own."""
    made: list[AuroraCluster] = []

    def make(**options: Any) -> AuroraCluster:  # noqa: ANN401 - those of the class
        made.append(AuroraCluster(tmp_path / f"cluster-{len(made)}", **options))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.kill()


def test_a_job_runs_its_instances_with_their_variables(job: Aurora, eventually: Eventually) -> None:
    """The states of a task, its port, its output; a second job of that name is refused."""
    assert words(job.create("echo {{mesos.instance}} {{thermos.ports[http]}} '<'; exec sleep 600", 2)) == (CODE.OK, "")
    eventually(lambda: len(job.running()) == 2, what="both run")
    task = job.running()[1]
    assert events(task) == [STATUS.INIT, STATUS.PENDING, STATUS.ASSIGNED, STATUS.STARTING, STATUS.RUNNING]
    expected = f"1 {task.assignedTask.assignedPorts['http']} &lt;\n"
    eventually(lambda: job.log(task) == expected, what="the output is there, with the signs of XML escaped")
    assert words(job.create()) == (CODE.INVALID_REQUEST, f"Job {job.job.role}/test/job already exists")
    job.media_type = JSON
    assert {each.assignedTask.instanceId for each in job.tasks(STATUS.RUNNING)} == {0, 1}
    found = job.call("getTasksWithoutConfigs", query=interface.TaskQuery(role=job.job.role)).result.scheduleStatusResult
    assert [each.assignedTask.task.executorConfig for each in found.tasks] == [None, None]


def test_kill_ends_instances_or_the_whole_job(job: Aurora, eventually: Eventually) -> None:
    """A killed task is not replaced, and its processes are gone."""
    job.create(count=3)
    eventually(lambda: len(job.running()) == 3, what="all run")
    pids = {
        each.assignedTask.instanceId: job.cluster.containers()[each.assignedTask.taskId]
        for each in job.running().values()
    }
    job.call("killTasks", job=job.job, instances=[1], message="too many")
    eventually(lambda: len(job.tasks(STATUS.KILLED)) == 1, what="one is killed")
    (killed,) = job.tasks(STATUS.KILLED)
    assert killed.assignedTask.instanceId == 1
    assert "Killed by UNSECURE. too many" in [each.message for each in killed.taskEvents]
    assert not os.path.exists(f"/proc/{pids[1]}")
    job.call("killTasks", job=job.job, instances=None, message=None)
    eventually(lambda: len(job.tasks(STATUS.KILLED)) == 3, what="all are killed")
    assert words(job.call("killTasks", job=job.job, instances=None, message=None)) == (CODE.OK, "No tasks to kill.")


def test_a_service_is_rescheduled_with_a_growing_penalty(job: Aurora, eventually: Eventually) -> None:
    """The next task names the one before, counts its failures and is throttled for longer."""
    job.create("exit 3")
    eventually(lambda: len(job.tasks(STATUS.FAILED)) >= 3, what="three have failed")
    first, second, third = sorted(job.tasks(STATUS.FAILED), key=lambda each: each.failureCount)[:3]
    assert (second.ancestorId, third.ancestorId) == (first.assignedTask.taskId, second.assignedTask.taskId)
    assert [each.failureCount for each in (first, second, third)] == [0, 1, 2]
    penalties = [
        next(each.message for each in at.taskEvents if each.status == STATUS.THROTTLED) for at in (second, third)
    ]
    assert penalties[0] == "Rescheduled, penalized for 200 ms for flapping"
    assert int(penalties[1].split()[3]) > 200


def test_a_task_of_no_service_fails_for_good(job: Aurora, eventually: Eventually) -> None:
    """After `maxTaskFailures`; one that has finished is not replaced."""
    job.create("exit 3", isService=False)
    eventually(lambda: len(job.tasks(STATUS.FAILED)) == 1, what="it has failed")
    assert len(job.tasks()) == 1
    job.create("exit 0", isService=False)
    eventually(lambda: len(job.tasks(STATUS.FINISHED)) == 1, what="it has finished")
    assert len(job.tasks()) == 2


def test_an_executor_config_that_is_no_json_fails_its_task(job: Aurora, eventually: Eventually) -> None:
    """The scheduler does not look into it."""
    executor = interface.ExecutorConfig(name="AuroraExecutor", data="{")
    config = job.config(isService=False)
    config.executorConfig = executor
    described = interface.JobConfiguration(key=job.job, taskConfig=config, instanceCount=1)
    assert words(job.call("createJob", description=described)) == (CODE.OK, "")
    eventually(lambda: len(job.tasks(STATUS.FAILED)) == 1, what="it has failed")


def test_restart_replaces_tasks(job: Aurora, eventually: Eventually) -> None:
    """The next task has the same instance; an instance that is not there is refused."""
    job.create()
    eventually(lambda: len(job.running()) == 1, what="it runs")
    before = job.running()[0].assignedTask.taskId
    job.call("restartShards", job=job.job, shardIds=[0])
    eventually(lambda: [each.ancestorId for each in job.running().values()] == [before], what="the next task runs")
    (ended,) = job.tasks(STATUS.KILLED)
    assert STATUS.RESTARTING in events(ended)
    answer = job.call("restartShards", job=job.job, shardIds=[0, 7])
    assert words(answer) == (CODE.INVALID_REQUEST, "Not all requested shards are active.")


def test_instances_are_added_like_another(job: Aurora, eventually: Eventually) -> None:
    """They get the next numbers."""
    job.create()
    key = interface.InstanceKey(jobKey=job.job, instanceId=0)
    assert words(job.call("addInstances", key=key, count=2)) == (CODE.OK, "")
    eventually(lambda: sorted(job.running()) == [0, 1, 2], what="three run")
    key.instanceId = 9
    answer = job.call("addInstances", key=key, count=1)
    assert words(answer) == (CODE.INVALID_REQUEST, "No active task found for a given instance ID.")


def test_a_task_that_fits_nowhere_waits_with_its_reason(job: Aurora, eventually: Eventually) -> None:
    """Resources, an attribute, and a limit for each host; a waiting task that is killed is gone."""
    rack = interface.Constraint(
        name="rack", constraint=interface.TaskConstraint(value=interface.ValueConstraint(negated=False, values=["c"]))
    )
    host = interface.Constraint(
        name="host", constraint=interface.TaskConstraint(limit=interface.LimitConstraint(limit=1))
    )

    def reasons() -> list[str]:
        found = job.call("getPendingReason", query=interface.TaskQuery(role=job.job.role))
        return sorted(each.reason for each in found.result.getPendingReasonResult.reasons)

    for more, reason in (
        ({"cpus": 99.0}, "Insufficient: CPU"),
        ({"constraints": [rack]}, "Constraint not satisfied: rack"),
        ({"constraints": [host], "count": 3}, "Limit not satisfied: host"),
    ):
        job.create(**more)
        eventually(partial(lambda wanted: reasons() == [wanted], reason), what=reason)
        if "count" in more:
            eventually(lambda: len(job.running()) == 2, what="one runs on each host")
            hosts = {each.assignedTask.slaveHost for each in job.running().values()}
            assert hosts == {"127.0.0.2", "127.0.0.3"}
        job.call("killTasks", job=job.job, instances=None, message=None)
        eventually(lambda: not job.tasks(STATUS.PENDING, STATUS.KILLING, STATUS.RUNNING), what="all is gone")


def test_a_quota_is_exceeded_in_words(cluster: Clusters) -> None:
    """Preferred tasks count, preemptible ones do not."""
    job = Aurora(cluster(quotas={"www": (2, 100, 1000)}), "www")
    answer = job.create(count=3)
    assert words(answer) == (
        CODE.INVALID_REQUEST,
        "Insufficient resource quota: CPU quota exceeded by 1.00 core(s); RAM quota exceeded by 92.00 MB",
    )
    assert words(job.create(count=3, tier="preemptible")) == (CODE.OK, "")
    found = job.call("getQuota", ownerRole="www").result.getQuotaResult
    assert (found.quota.numCpus, found.prodSharedConsumption.numCpus, found.nonProdSharedConsumption.numCpus) == (
        2,
        0,
        3,
    )
    amount = interface.ResourceAggregate(numCpus=9.0, ramMb=900, diskMb=900, resources=[])
    job.call("setQuota", ownerRole="www", quota=amount)
    job.job.name = "other"
    assert words(job.create(count=3)) == (CODE.OK, "")


def test_a_preferred_task_preempts_a_preemptible_one(cluster: Clusters, eventually: Eventually) -> None:
    """The other waits until there is room again."""
    made = cluster(hosts=[((2.0, 4096, 4096), {})])
    low, high = Aurora(made, "low"), Aurora(made, "high")
    low.create(cpus=2.0, tier="preemptible")
    eventually(lambda: len(low.running()) == 1, what="the first runs")
    high.create(cpus=2.0)
    eventually(lambda: len(high.running()) == 1, what="the second has its place")
    (ended,) = low.tasks(STATUS.KILLED)
    assert STATUS.PREEMPTING in events(ended)
    assert len(low.tasks(STATUS.PENDING, STATUS.THROTTLED)) == 1
    high.call("killTasks", job=high.job, instances=None, message=None)
    eventually(lambda: len(low.running()) == 1, what="the first runs again")


def test_an_update_changes_one_instance_after_the_other(job: Aurora, eventually: Eventually) -> None:
    """Each is watched; calls that change the job are refused meanwhile."""
    job.create(count=2)
    eventually(lambda: len(job.running()) == 2, what="both run")
    same = job.update(job.config(), 2)
    assert words(same) == (CODE.OK, "Job is unchanged by proposed update.")
    answer = job.update(job.config("exec sleep 601"), 3, minWaitInInstanceRunningMs=100)
    key = answer.result.startJobUpdateResult.key
    assert words(job.call("killTasks", job=job.job, instances=None, message=None))[0] == CODE.JOB_UPDATING_ERROR
    assert words(job.update(job.config(), 1))[0] == CODE.INVALID_REQUEST
    eventually(lambda: job.update_status() == UPDATE.ROLLED_FORWARD, what="the update is done")
    done = [(each.instanceId, each.action) for each in job.details().instanceEvents]
    assert done == [(at, action) for at in range(3) for action in (ACTION.INSTANCE_UPDATING, ACTION.INSTANCE_UPDATED)]
    assert sorted(job.running()) == [0, 1, 2]
    pulse = job.call("pulseJobUpdate", key=key).result.pulseJobUpdateResult.status
    assert pulse == interface.JobUpdatePulseStatus.FINISHED


def test_an_update_changes_only_some_instances_in_batches(job: Aurora, eventually: Eventually) -> None:
    """`updateOnlyTheseInstances`, and instances that are removed."""
    job.create(count=3)
    eventually(lambda: len(job.running()) == 3, what="all run")
    before = job.running()[0].assignedTask.taskId
    some = [interface.Range(first=1, last=2)]
    outside = job.update(job.config("exec sleep 601"), 3, updateOnlyTheseInstances=[interface.Range(first=7, last=7)])
    assert "some are irrelevant to the update" in words(outside)[1]
    job.update(
        job.config("exec sleep 601"), 3, updateOnlyTheseInstances=some, updateGroupSize=2, waitForBatchCompletion=True
    )
    eventually(lambda: job.update_status() == UPDATE.ROLLED_FORWARD, what="the update is done")
    actions = [each.action for each in job.details().instanceEvents]
    assert actions == [ACTION.INSTANCE_UPDATING] * 2 + [ACTION.INSTANCE_UPDATED] * 2
    assert job.running()[0].assignedTask.taskId == before
    groups = job.call("getConfigSummary", job=job.job).result.configSummaryResult.summary.groups
    assert sorted((each.first, each.last) for group in groups for each in group.instances) == [(0, 0), (1, 2)]
    batches = interface.VariableBatchJobUpdateStrategy(groupSizes=[1, 2])
    job.update(job.config(), 1, updateStrategy=interface.JobUpdateStrategy(varBatchStrategy=batches))
    eventually(
        lambda: job.update_status() == UPDATE.ROLLED_FORWARD and sorted(job.running()) == [0], what="one is left"
    )
    order = [(each.instanceId, each.action) for each in job.details().instanceEvents]
    assert order[0][0] == order[1][0] == 1
    assert [action for _, action in order[2:]] == [ACTION.INSTANCE_UPDATING, ACTION.INSTANCE_UPDATED]


@pytest.mark.parametrize("back", [True, False])
def test_an_update_whose_instances_fail_goes_back(job: Aurora, eventually: Eventually, back: bool) -> None:
    """After `maxPerInstanceFailures`, unless the settings say otherwise."""
    job.create(count=2)
    eventually(lambda: len(job.running()) == 2, what="both run")
    job.update(
        job.config("exit 1"), 2, maxPerInstanceFailures=1, rollbackOnFailure=back, minWaitInInstanceRunningMs=3000
    )
    end = UPDATE.ROLLED_BACK if back else UPDATE.FAILED
    eventually(lambda: job.update_status() == end, what="the update has ended")
    actions = [(each.instanceId, each.action) for each in job.details().instanceEvents]
    assert actions[:2] == [(0, ACTION.INSTANCE_UPDATING), (0, ACTION.INSTANCE_UPDATE_FAILED)]
    if back:
        assert actions[2:] == [(0, ACTION.INSTANCE_ROLLING_BACK), (0, ACTION.INSTANCE_ROLLED_BACK)]
        eventually(lambda: len(job.running()) == 2, what="both run as before")
        assert all("sleep 600" in each.assignedTask.task.executorConfig.data for each in job.running().values())


def test_an_update_is_paused_and_pulsed_and_turned_back(job: Aurora, eventually: Eventually) -> None:
    """The states that clients order, and those in which they are refused."""
    job.create(count=2)
    eventually(lambda: len(job.running()) == 2, what="both run")
    watched = {"minWaitInInstanceRunningMs": 60000}
    job.update(job.config("exec sleep 601"), 2, blockIfNoPulsesAfterMs=600000, **watched)
    key = job.details().update.summary.key
    assert job.update_status() == UPDATE.ROLL_FORWARD_AWAITING_PULSE
    job.call("pulseJobUpdate", key=key)
    assert job.update_status() == UPDATE.ROLLING_FORWARD
    assert words(job.call("resumeJobUpdate", key=key, message=None))[0] == CODE.INVALID_REQUEST
    job.call("pauseJobUpdate", key=key, message="wait")
    assert job.update_status() == UPDATE.ROLL_FORWARD_PAUSED
    job.call("resumeJobUpdate", key=key, message=None)
    eventually(lambda: "sleep 601" in str(job.running().get(0)), what="the first instance is new")
    assert words(job.call("rollbackJobUpdate", key=key, message="back")) == (CODE.OK, "")
    assert job.update_status() == UPDATE.ROLLING_BACK
    assert words(job.call("rollbackJobUpdate", key=key, message=None))[0] == CODE.INVALID_REQUEST
    job.call("abortJobUpdate", key=key, message=None)
    assert job.update_status() == UPDATE.ABORTED
    unknown = interface.JobUpdateKey(job=job.job, id="unknown")
    assert "Update does not exist" in words(job.call("abortJobUpdate", key=unknown, message=None))[1]


def test_users_have_rights_in_roles(cluster: Clusters) -> None:
    """401 without credentials for a change, and AUTH_FAILED for another role."""
    users = {"ada": {"password": "p", "permissions": ["thrift.AuroraSchedulerManager:*:www"]}}
    made = cluster(users=users)
    assert Aurora(made, "www").tasks() == []
    for auth in (None, ("ada", "wrong")):
        with pytest.raises(Refused, match=r"401.*Apache Aurora"):
            Aurora(made, "www", auth).create()
    assert words(Aurora(made, "www", ("ada", "p")).create()) == (CODE.OK, "")
    refused = words(Aurora(made, "other", ("ada", "p")).create())
    permission = "thrift.AuroraSchedulerManager:createJob:other:test:job"
    assert refused == (CODE.AUTH_FAILED, f"Subject ada is not permitted to {permission}.")


def test_a_restarted_scheduler_goes_on(cluster: Clusters, eventually: Eventually) -> None:
    """Tasks run on, and an update goes on where it was."""
    made = cluster()
    job = Aurora(made, "www")
    job.create(count=2)
    eventually(lambda: len(job.running()) == 2, what="both run")
    before = made.containers()
    made.process.kill()
    made.start()
    assert made.containers() == before
    assert len(job.running()) == 2
    job.update(job.config("exec sleep 601"), 2, minWaitInInstanceRunningMs=1000)
    made.process.kill()
    made.start()
    eventually(lambda: job.update_status() == UPDATE.ROLLED_FORWARD, what="the update is done")
    assert all("sleep 601" in str(each) for each in job.running().values())


def test_tasks_of_a_lost_host_run_elsewhere(cluster: Clusters, eventually: Eventually) -> None:
    """When the host is back, the old processes end."""
    made = cluster()
    job = Aurora(made, "www")
    job.create()
    eventually(lambda: len(job.running()) == 1, what="it runs")

    def replaces(task_id: str) -> bool:
        return [each.ancestorId for each in job.running().values()] == [task_id]

    for mode in ("down", "partitioned"):
        task = job.running()[0].assignedTask
        place = Path(f"/proc/{made.containers()[task.taskId]}")
        made.change_host(task.slaveId, mode)
        eventually(partial(replaces, task.taskId), what="it runs elsewhere")
        assert place.exists() == (mode == "partitioned")
        made.change_host(task.slaveId, "up")
        eventually(partial(lambda process: not process.exists(), place), what="the old process has ended")
    assert len(job.tasks(STATUS.LOST)) == 2


def test_summaries_and_defaults(job: Aurora, eventually: Eventually) -> None:
    """What pages and tools read."""
    job.create(count=2)
    eventually(lambda: len(job.running()) == 2, what="both run")
    (found,) = job.call("getJobs", ownerRole=job.job.role).result.getJobsResult.configs
    assert (found.key, found.instanceCount) == (job.job, 2)
    (summary,) = job.call("getJobSummary", role=job.job.role).result.jobSummaryResult.summaries
    assert (summary.stats.activeTaskCount, summary.stats.pendingTaskCount) == (2, 0)
    roles = job.call("getRoleSummary").result.roleSummaryResult.summaries
    assert [each.jobCount for each in roles if each.role == job.job.role] == [1]
    described = interface.JobConfiguration(key=job.job, taskConfig=job.config(tier=None), instanceCount=1)
    config = job.call("populateJobConfig", description=described).result.populateJobResult.taskConfig
    assert (config.tier, config.production) == ("preemptible", False)
    tiers = job.call("getTierConfigs").result.getTierConfigResult
    assert {each.name for each in tiers.tiers} == {"preferred", "preemptible", "revocable"}
    request = interface.JobUpdateRequest(taskConfig=job.config("exit 0"), instanceCount=3, settings=None)
    diff = job.call("getJobUpdateDiff", request=request).result.getJobUpdateDiffResult
    assert [(each.first, each.last) for group in diff.add for each in group.instances] == [(2, 2)]
    assert [(each.first, each.last) for group in diff.update for each in group.instances] == [(0, 1)]
    for described.taskConfig, problem in (
        (job.config(cpus=0.0), "positive amount of cpus"),
        (job.config(tier="best"), "Tier 'best' does not exist."),
    ):
        assert problem in words(job.call("createJob", description=described))[1]


def test_an_answer_that_is_lost(job: Aurora, eventually: Eventually) -> None:
    """The job is there; a fault is named by the method."""
    job.cluster.fault(Fault("createJob", "drop"))
    with pytest.raises(httpx.RemoteProtocolError):
        job.create()
    eventually(lambda: len(job.running()) == 1, what="it runs")
    job.cluster.fault(Fault("getJobs", "refuse", status=500))
    with pytest.raises(Refused, match="500"):
        job.call("getJobs", ownerRole=None)
