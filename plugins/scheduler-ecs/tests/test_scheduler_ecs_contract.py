"""The scheduler contract on the ECS for tests, with a user who has the policy of the README and nothing more."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from botocore.exceptions import ClientError

from heron.errors import SchedulerError
from heron.spi.scheduler import ContainerStatus, Scheduler
from heron_scheduler_ecs.ecs_cluster import EcsCluster, active_revisions
from heron_scheduler_ecs.scheduler import EcsScheduler
from heron_scheduler_ecs.task_spec import LAUNCH
from heron_scheduler_kit.managed.cluster import JobChange
from heron_scheduler_kit.managed.container_change import launch_files
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract, runs
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.ecs import EcsServer
from heron_testing_servers.http_service import Fault

pytestmark = pytest.mark.servers

_README = Path(__file__).parents[1] / "README.md"
_WITHIN_S = 10.0
_BACK_S = 60.0
_BUCKET = "jobs"
_THROTTLED = json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"})

Admin = Callable[[str], Any]
"""Returns the administrator's client of a service."""

Policy = dict[str, Any]


def policy(without: str = "") -> Policy:
    """Return the IAM policy of the README for the ECS for tests, without one action."""
    found = re.search(r"```json\n(.*?)```", _README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    text = found[1]
    names = {"REGION": "us-east-1", "ACCOUNT": "123456789012", "CLUSTER": EcsServer.cluster, "BUCKET": _BUCKET}
    for name, value in names.items():
        text = text.replace(name, value)
    made: Policy = json.loads(text)
    for each in made["Statement"]:
        each["Action"] = [action for action in each["Action"] if action != without] or ["none:None"]
    return made


def actions() -> list[str]:
    """Return the actions of the policy, in order."""
    return list(dict.fromkeys(action for each in policy()["Statement"] for action in each["Action"]))


def clients(ecs: EcsServer) -> Admin:
    """Return the clients of the administrator."""
    keys = {"aws_access_key_id": ecs.access_key, "aws_secret_access_key": ecs.secret_key, "region_name": ecs.region}
    return lambda service: boto3.client(service, endpoint_url=ecs.url, **keys)


@pytest.fixture(scope="module")
def admin(ecs: EcsServer) -> Admin:
    """The clients of the administrator, who has made what the README asks for."""
    made = clients(ecs)
    made("s3").create_bucket(Bucket=_BUCKET)
    made("logs").create_log_group(logGroupName="heron")
    ecs.add_role("heron-execution")
    ecs.add_role("heron-task")
    return made


@pytest.fixture(scope="module")
def keys(ecs: EcsServer, admin: Admin) -> tuple[str, str]:
    del admin
    return ecs.add_user("heron", policy())


@pytest.fixture
def relay(ecs: EcsServer) -> Iterator[Relay]:
    """Connects the driver to the server, and can cut the connections."""
    relay = Relay(ecs.address)
    yield relay
    relay.close()
    ecs.clear_faults()


class TestEcsScheduler(SchedulerContract):
    name = "ecs"
    driver_class = EcsScheduler
    uses_state = True

    admin: Admin

    @pytest.fixture(autouse=True)
    def _use_admin(self, admin: Admin) -> None:
        self.admin = admin

    @pytest.fixture
    def options(self, relay: Relay, keys: tuple[str, str], tmp_path: Path) -> dict[str, object]:
        host, port = relay.address
        access = {"access_key_id": keys[0], "secret_access_key": keys[1], "region": EcsServer.region}
        return {
            "aws": {"bucket": _BUCKET, "prefix": "heron/jobs", "endpoint_url": f"http://{host}:{port}", **access},
            "cluster": EcsServer.cluster,
            "image": "heron:1",
            "execution_role": "arn:aws:iam::123456789012:role/heron-execution",
            "task_role": "arn:aws:iam::123456789012:role/heron-task",
            "subnets": ["subnet-1"],
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "env": {"TMPDIR": str(tmp_path)},
            "stop_grace_s": 1.0,
            "start_s": 60.0,
        }

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def test_kill_leaves_nothing(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """AWS has no service, task definition, secret or object of the topology either."""
        super().test_kill_leaves_nothing(scheduler, other, bench)
        assert left(self.admin, "t") == []

    def test_a_stopped_task_is_replaced(self, scheduler: Scheduler, bench: Bench) -> None:
        """A person stops a task: the container gets another attempt, and the others keep theirs.

        The fake executor that obeys SIGTERM ends with code 0, as one that has finished; a real one does not.
        """
        scheduler.schedule(bench.job("t", "serve", "deaf"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        self.admin("ecs").stop_task(cluster=EcsServer.cluster, task=task_of(scheduler, 1)["taskArn"])
        assert bench.wait("t", 1, attempt=2).pid != second.pid
        assert not runs(second.pid)
        assert bench.wait("t", 0).pid == first.pid
        wait_until(lambda: scheduler.status("t").containers[1].running, _BACK_S, "container 1 runs")
        assert scheduler.status("t").containers[1].attempts == 2

    def test_containers_outlive_the_server(self, scheduler: Scheduler, bench: Bench, ecs: EcsServer) -> None:
        """While AWS does not answer, containers go on, and the same processes are known afterwards."""
        scheduler.schedule(bench.job("t", "serve"))
        before = bench.wait_until_known(scheduler, "t", 0)
        ecs.process.kill()
        try:
            with pytest.raises(SchedulerError, match="gets no answer"):
                scheduler.status("t")
            assert runs(before.pid)
        finally:
            ecs.start()
        wait_until(lambda: scheduler.status("t").containers == (ContainerStatus(0, True, 1),), _BACK_S, "it is known")
        assert bench.wait("t", 0).pid == before.pid

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"image": "missing"}, "CannotPullContainerError"),
            ({"log_group": "none"}, "The specified log group does not exist"),
            ({"python": "/usr/bin/python3"}, "exit code 1"),
            (
                {"launch_type": "EC2", "manager_memory_mb": 10**6},
                "unable to place a task because no container instance",
            ),
        ],
    )
    def test_a_container_that_does_not_start_says_why(
        self, options: dict[str, object], bench: Bench, wrong: dict[str, object], said: str
    ) -> None:
        """`heron status` has the words of ECS within ten seconds."""
        with opened({**options, **wrong}, bench) as scheduler:
            scheduler.schedule(bench.job("t", "serve"))
            wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _WITHIN_S, said)
            scheduler.kill("t")
        assert left(self.admin, "t") == []

    def test_the_circuit_breaker_ends_the_starts_of_a_wrong_image(
        self, options: dict[str, object], bench: Bench
    ) -> None:
        """Each try costs money on Fargate; the status keeps the reason."""
        with opened({**options, "image": "missing"}, bench) as scheduler:
            scheduler.schedule(bench.job("t", "serve"))
            said = "ECS deployment circuit breaker: tasks failed to start"
            wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _BACK_S, said)
            assert "CannotPullContainerError" in scheduler.status("t").containers[0].last_error
            scheduler.kill("t")

    def test_no_capacity_and_an_end_by_memory_are_in_the_status(
        self, scheduler: Scheduler, bench: Bench, ecs: EcsServer
    ) -> None:
        """The container starts when Fargate has room; the reason of its end is that of the kernel."""
        ecs.set_fargate(capacity=False)
        try:
            scheduler.schedule(bench.job("t", "deaf"))
            said = "Capacity is unavailable"
            wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _WITHIN_S, said)
        finally:
            ecs.set_fargate(capacity=True)
        bench.wait_until_known(scheduler, "t", 0)
        ecs.out_of_memory(str(task_of(scheduler, 0)["taskArn"]))
        said = "OutOfMemoryError"
        wait_until(lambda: said in scheduler.status("t").containers[0].last_error, _WITHIN_S, said)
        bench.wait("t", 0, attempt=2)

    @pytest.mark.parametrize(
        "operation",
        ["s3:PutObject", "secretsmanager:CreateSecret", "ecs:RegisterTaskDefinition", "ecs:CreateService"],
    )
    def test_a_lost_answer_starts_nothing_twice(
        self, scheduler: Scheduler, bench: Bench, ecs: EcsServer, operation: str
    ) -> None:
        """A submission reports it and leaves nothing. An update that is repeated finds what exists."""
        ecs.fault(Fault(operation, "drop"))
        with pytest.raises(SchedulerError, match="gets no answer"):
            scheduler.schedule(bench.job("t", "serve"))
        assert left(self.admin, "t") == []
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        cluster = cluster_of(scheduler)
        stored = cluster.find("t")
        assert stored is not None
        spec = bench.spec("t", 1)
        after = stored.job.with_added([spec], cluster._options, cluster.place)
        change = JobChange(stored.job, after, launch_files(after, [spec], cluster._options))
        cluster.replace(after, stored.version)
        ecs.fault(Fault(operation, "drop"))
        if operation != "s3:PutObject":
            with pytest.raises(SchedulerError, match="gets no answer"):
                cluster.apply(change)
        cluster.apply(change)
        ecs.clear_faults()
        cluster.apply(change)
        wait_until(lambda: len(tasks_of(scheduler)) == 2, _WITHIN_S, "one task for each container")
        assert len(active_revisions(cluster._api, cluster._of("t"))) == 2
        assert len(services_of(scheduler)) == 2

    def test_throttled_requests_are_repeated(self, scheduler: Scheduler, bench: Bench, ecs: EcsServer) -> None:
        """Other users of the account may have used its requests up."""
        for each in ("ecs:CreateService", "ecs:RegisterTaskDefinition", "secretsmanager:CreateSecret"):
            ecs.fault(Fault(each, "refuse", 2, 400, _THROTTLED))
        scheduler.schedule(bench.job("t", "serve"))
        assert ecs.faults() == []
        bench.wait_until_known(scheduler, "t", 0)
        assert len(revisions_of(scheduler)) == 1

    def test_a_check_creates_and_removes_what_a_submission_needs(self, options: dict[str, object]) -> None:
        """It says where jobs run, and leaves nothing."""
        scheduler = EcsScheduler.open(options)
        assert scheduler.check(_WITHIN_S).startswith("ECS cluster tests in us-east-1, jobs in bucket 'jobs'")
        assert left(self.admin, "check-") == []

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"access_key_id": "AKIANOBODY"}, "UnrecognizedClientException.*check scheduler.aws.access_key_id"),
            ({"secret_access_key": "swordfish"}, "InvalidSignatureException.*the secret key is wrong"),
            (
                {"region": "eu-west-1"},
                "in eu-west-1.*not authorized.*or correct scheduler.cluster or scheduler.aws.region",
            ),
            ({"endpoint_url": "http://127.0.0.1:9"}, "gets no answer.*check .*scheduler.aws.endpoint_url"),
            ({"bucket": "nobodys"}, "bucket 'nobodys'"),
        ],
    )
    def test_a_wrong_credential_address_or_place_is_explained(
        self, options: dict[str, Any], wrong: dict[str, str], said: str
    ) -> None:
        """`heron profiles check` names the key to correct, and does not show the secret."""
        with pytest.raises(SchedulerError, match=said) as caught:
            EcsScheduler.open({**options, "aws": {**options["aws"], **wrong}}).check(_WITHIN_S)
        assert "swordfish" not in str(caught.value)

    @pytest.mark.parametrize(("cluster", "region"), [("none", "us-east-1"), ("tests", "eu-west-1")])
    def test_a_wrong_cluster_or_region_is_explained(
        self, options: dict[str, Any], ecs: EcsServer, cluster: str, region: str
    ) -> None:
        """A user who may see all clusters is told that there is none of that name in the region."""
        access = {"access_key_id": ecs.access_key, "secret_access_key": ecs.secret_key, "region": region}
        wrong = {**options, "cluster": cluster, "aws": {**options["aws"], **access}}
        said = rf"ECS cluster {cluster} in {region} is MISSING; correct scheduler\.cluster or scheduler\.aws\.region"
        with pytest.raises(SchedulerError, match=said):
            EcsScheduler.open(wrong).check(_WITHIN_S)

    @pytest.mark.parametrize("action", actions())
    def test_each_missing_right_is_named(self, options: dict[str, Any], ecs: EcsServer, action: str) -> None:
        """Each action of the policy in the README is needed, and the check leaves nothing without it."""
        key, secret = ecs.add_user(f"less{action.replace(':', '').lower()}", policy(without=action))
        access = {"access_key_id": key, "secret_access_key": secret}
        with pytest.raises(SchedulerError, match=f"not authorized to perform: {action} .*policy in the README"):
            EcsScheduler.open({**options, "aws": {**options["aws"], **access}}).check(_WITHIN_S)
        assert left(self.admin, "check-") == []

    def test_nobody_sees_the_launch_file(
        self, scheduler: Scheduler, bench: Bench, keys: tuple[str, str], ecs: EcsServer
    ) -> None:
        """Not who reads task definitions, not the user who submits, and no child of the first process."""
        scheduler.schedule(bench.job("t", "serve"))
        executor = bench.wait_until_known(scheduler, "t", 0)
        (definition,) = revisions_of(scheduler)
        shown = self.admin("ecs").describe_task_definition(taskDefinition=definition)["taskDefinition"]
        secrets = shown["containerDefinitions"][0]["secrets"]
        assert str(bench.log_dir("t")) not in json.dumps(shown, default=str), "a part of the spec"
        own = boto3.client(
            "secretsmanager",
            endpoint_url=ecs.url,
            region_name=ecs.region,
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
        )
        with pytest.raises(ClientError, match="GetSecretValue"):
            own.get_secret_value(SecretId=secrets[0]["valueFrom"])
        launcher = psutil.Process(executor.pid).parent()
        assert launcher is not None
        for pid in (executor.pid, launcher.pid):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            assert LAUNCH.encode() not in environment
            assert b"ECS_CONTAINER_METADATA_URI_V4" in environment
        assert not [each for each in Path(f"/proc/{executor.pid}/fd").iterdir() if "memfd:launch" in os.readlink(each)]

    def test_people_find_a_container_with_the_tools_of_aws(self, scheduler: Scheduler, bench: Bench) -> None:
        """Links, tags, the size, and what the launcher has printed."""
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait_until_known(scheduler, "t", 0)
        links = {each.title: each.url for each in scheduler.links("t")}
        assert links["tasks"] == "aws ecs list-tasks --region us-east-1 --cluster tests --family heron-t"
        (service,) = services_of(scheduler)
        page = "https://us-east-1.console.aws.amazon.com/ecs/v2/clusters/tests/services"
        assert links["container 0"] == f"{page}/{service}?region=us-east-1"
        where = scheduler.status("t").containers[0].where
        assert where.endswith("1 vCPU, 2048 MiB, rounded up from 0.6 vCPU, 512 MiB")
        task = task_of(scheduler, 0)
        shown = self.admin("ecs").describe_tasks(cluster=EcsServer.cluster, tasks=[task["taskArn"]], include=["TAGS"])
        marks = {each["key"]: each["value"] for each in shown["tasks"][0]["tags"]}
        assert (marks["heron:topology"], marks["heron:run"], marks["heron:container"]) == ("t", "t-1", "0")

        def printed() -> bool:
            return any("container 0 starts, attempt 1" in each for each in scheduler.output("t", 0, 5))

        wait_until(printed, _WITHIN_S, "the output of the launcher")

    def test_kill_finds_a_service_that_the_job_does_not_name_among_many(
        self, scheduler: Scheduler, bench: Bench
    ) -> None:
        """An update that was killed may leave one. The cluster has more services than a page of the list."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        executors = [bench.wait_until_known(scheduler, "t", number) for number in range(2)]
        cluster, client = cluster_of(scheduler), self.admin("ecs")
        (definition, _) = active_revisions(cluster._api, cluster._of("t"))
        network = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
        for number in range(101):
            given = {"cluster": EcsServer.cluster, "taskDefinition": definition, "networkConfiguration": network}
            client.create_service(serviceName=f"other-{number}", desiredCount=0, launchType="FARGATE", **given)
        try:
            stored = cluster.find("t")
            assert stored is not None
            cluster.replace(stored.job.without([1]), stored.version)
            scheduler.kill("t")
            assert left(self.admin, "t") == []
            assert not any(runs(each.pid) for each in executors)
        finally:
            for number in range(101):
                client.delete_service(cluster=EcsServer.cluster, service=f"other-{number}")


@contextmanager
def opened(options: dict[str, object], bench: Bench) -> Iterator[Scheduler]:
    """Open a scheduler with other options."""
    with bench.state() as statemgr:
        assert statemgr is not None
        scheduler = EcsScheduler.open(options)
        scheduler.use_state(statemgr)
        yield scheduler


def revisions_of(scheduler: Scheduler) -> list[str]:
    cluster = cluster_of(scheduler)
    return active_revisions(cluster._api, cluster._of("t"))


def cluster_of(scheduler: Scheduler) -> EcsCluster:
    assert isinstance(scheduler, EcsScheduler)
    assert isinstance(scheduler._cluster, EcsCluster)
    return scheduler._cluster


def tasks_of(scheduler: Scheduler) -> list[dict[str, object]]:
    """Return the tasks of the topology ``t`` that should run."""
    found = cluster_of(scheduler)._api.tasks("heron-t")
    return [each for each in found if each["desiredStatus"] == "RUNNING"]


def task_of(scheduler: Scheduler, container_id: int) -> dict[str, object]:
    """Return the task of a container of the topology ``t``."""
    (found,) = (each for each in tasks_of(scheduler) if f"service:heron-t-{container_id}-" in str(each["group"]))
    return found


def services_of(scheduler: Scheduler, topology: str = "t") -> list[str]:
    """Return the names of the services of a topology that are not ending, or of those whose names begin so."""
    api = cluster_of(scheduler)._api
    names = [each.rpartition("/")[2] for each in api.listed("ecs", "list_services", "serviceArns", api.named)]
    return [each for each in names if each.startswith(f"heron-{topology}")]


def left(admin: Admin, topology: str) -> list[str]:
    """Return what AWS still has of a topology, or of those whose names begin so; a service may still be ending."""
    secrets = admin("secretsmanager").list_secrets()["SecretList"]
    definitions = admin("ecs").list_task_definitions(familyPrefix=f"heron-{topology}")["taskDefinitionArns"]
    objects = admin("s3").list_objects_v2(Bucket=_BUCKET, Prefix=f"heron/jobs/{topology}").get("Contents", ())
    services = admin("ecs").list_services(cluster=EcsServer.cluster, maxResults=100)["serviceArns"]
    active = [
        each["serviceName"]
        for name in services
        if f"/heron-{topology}" in name
        for each in admin("ecs").describe_services(cluster=EcsServer.cluster, services=[name])["services"]
        if each["status"] == "ACTIVE"
    ]
    found = [each["Name"] for each in secrets if each["Name"].startswith(f"heron/{topology}")]
    return [*found, *definitions, *active, *(each["Key"] for each in objects)]
