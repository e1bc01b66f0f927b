"""Topologies on the ECS for tests, whose tasks, instances and server are lost in turn; no line is lost."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from heron_testing_servers.ecs import EcsServer
from on_cluster import ClusterJournal, OnCluster

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.sandbox import Sandbox

_LOOPS = 30


class EcsCluster:
    """An ECS with a bucket and a log group of its own, and the profile ``cluster`` that names them."""

    def __init__(self, server: EcsServer, sandbox: Sandbox) -> None:
        self.server, self.sandbox = server, sandbox
        keys = {"aws_access_key_id": server.access_key, "aws_secret_access_key": server.secret_key}
        self.clients = {
            each: boto3.client(each, endpoint_url=server.url, region_name=server.region, **keys)
            for each in ("ecs", "logs", "s3", "secretsmanager")
        }
        self.mark = f"e2e{secrets.token_hex(4)}"
        self.clients["s3"].create_bucket(Bucket=self.mark)
        self.clients["logs"].create_log_group(logGroupName=self.mark)
        self.write_profile()

    def write_profile(self, **options: object) -> None:
        """Write the profile ``cluster``, with further options of the scheduler."""
        server, sandbox = self.server, self.sandbox
        access = {"access_key_id": server.access_key, "secret_access_key": server.secret_key}
        scheduler = {
            "driver": "ecs",
            "aws": {"bucket": self.mark, "endpoint_url": server.url, "region": server.region, **access},
            "cluster": server.cluster,
            "image": "heron:1",
            "execution_role": server.execution_role,
            "subnets": ["subnet-1"],
            "log_group": self.mark,
            "python": sys.executable,
            "stable_s": 0.0,
            "stop_grace_s": 3.0,
            "start_s": 60.0,
            "env": {"HOME": str(sandbox.home), "TMPDIR": str(sandbox.tmp)},  # all that runs belongs to the sandbox
            **options,
        }
        profile = {"extends": "local", "scheduler": scheduler, "engine": {"heron.executor.stable.s": 0}}
        sandbox.write_profile("cluster", json.dumps(profile))  # JSON is YAML

    def services(self) -> list[str]:
        """Return the names of the services that are not ending."""
        found = self.clients["ecs"].list_services(cluster=self.server.cluster, maxResults=100)["serviceArns"]
        shown = (
            each
            for begin in range(0, len(found), 10)
            for each in self.clients["ecs"].describe_services(
                cluster=self.server.cluster, services=found[begin : begin + 10]
            )["services"]
        )
        return [str(each["serviceName"]) for each in shown if each["status"] == "ACTIVE"]

    def tasks(self, family: str) -> list[dict[str, Any]]:
        """Return the tasks of a family that run and should."""
        ecs, where = self.clients["ecs"], {"cluster": self.server.cluster}
        arns = ecs.list_tasks(family=family, **where)["taskArns"]
        found = ecs.describe_tasks(tasks=arns, **where)["tasks"] if arns else []
        return [each for each in found if (each["lastStatus"], each["desiredStatus"]) == ("RUNNING", "RUNNING")]

    def left(self) -> list[object]:
        """Return what AWS has of topologies."""
        s3, kept = self.clients["s3"], self.clients["secretsmanager"]
        definitions = self.clients["ecs"].list_task_definitions(status="ACTIVE")["taskDefinitionArns"]
        objects = s3.list_objects_v2(Bucket=self.mark).get("Contents", [])
        return [*self.services(), *definitions, *objects, *kept.list_secrets()["SecretList"]]


@pytest.fixture
def cluster(sandbox: Sandbox, ecs: EcsServer) -> Iterator[EcsCluster]:
    ecs.start()
    cluster = EcsCluster(ecs, sandbox)
    yield cluster
    ecs.start()
    for name in cluster.services():  # of a failed test
        cluster.clients["ecs"].delete_service(cluster=ecs.cluster, service=name, force=True)


class EcsHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: EcsCluster, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal

    def stop_task(self) -> set[int]:
        """``aws ecs stop-task``: ECS starts another one."""
        self.cluster.clients["ecs"].stop_task(cluster=self.cluster.server.cluster, task=self._task(1))
        return {1}

    def take_back(self) -> set[int]:
        """Fargate Spot takes the capacity of a task back."""
        self.cluster.server.interrupt(self._task(2))
        return {2}

    def run_out_of_memory(self) -> set[int]:
        """The kernel kills the launcher of the manager's container."""
        self.cluster.server.out_of_memory(self._task(0))
        return {0}

    def lose_server(self) -> set[int]:
        """Kill the server for half a minute: no container notices."""
        self.cluster.server.process.kill()
        self.journal.flows_on("the end of the server")
        self.cluster.server.start()
        return set()

    def lose_instance(self, name: str) -> None:
        """Terminate an instance of EC2 with its tasks."""
        self.cluster.server.set_instance(name, running=False)

    def instances(self) -> dict[int, str]:
        """Return the instances of the containers."""
        return {
            container: str(each["containerInstanceArn"]).rpartition("/")[2]
            for container, each in self._by_container().items()
        }

    def _task(self, container_id: int) -> str:
        return str(self._by_container()[container_id]["taskArn"])

    def _by_container(self) -> dict[int, dict[str, Any]]:
        return {int(each["group"].split("-")[-2]): each for each in self.cluster.tasks("heron-journal")}


@pytest.mark.parametrize("names", [("stop_task", "take_back"), ("lose_server", "run_out_of_memory")], ids="-".join)
def test_no_line_is_lost_whatever_ecs_does(sandbox: Sandbox, cluster: EcsCluster, names: tuple[str, ...]) -> None:
    """At least once: only the containers that are ended restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = EcsHarm(cluster, journal)
    for name in names:
        journal.survives(getattr(harm, name))
    journal.let_go()


def test_no_line_is_lost_when_launchers_and_executors_are_killed(sandbox: Sandbox, cluster: EcsCluster) -> None:
    """A killed executor is restarted in its task; a killed launcher ends the task, and ECS starts another one."""
    assert cluster.mark
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    for each in (journal.kill_executor, journal.kill_launcher):
        journal.survives(each)
    journal.let_go()


def test_a_standby_on_another_instance_takes_over(sandbox: Sandbox, cluster: EcsCluster) -> None:
    """With `managers_apart: true` on EC2. The lost container waits for its instance, because there is no third one."""
    cluster.write_profile(launch_type="EC2", managers_apart=True)
    options = {"topology.tmanager.standbys": 1, "topology.stmgrs": 1}
    settings = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    journal = ClusterJournal(OnCluster(sandbox, "cluster"), *settings)
    harm = EcsHarm(cluster, journal)
    lost = harm.instances()
    try:
        journal.loses_leader(harm.instances, harm.lose_instance)
    finally:
        for name in set(lost.values()):
            cluster.server.set_instance(name, running=True)
    journal.flows("the loss of the leader")
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: EcsCluster) -> None:
    """The commands of the README: check, submit, status, logs. The counts are those of the text."""
    assert "ECS cluster tests in us-east-1" in sandbox.output_of("profiles", "check", "cluster")
    status = OnCluster(sandbox, "cluster").count_example(examples, _LOOPS)
    assert "aws ecs list-tasks --region us-east-1 --cluster tests --family heron-word_count" in status
    assert "vCPU" in status
    assert "rounded up from" in status
    assert cluster.left() == []


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: EcsCluster) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def services() -> int:
        return sum(each.startswith("heron-updating-") for each in cluster.services())

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "cluster").update(steps, services)
    assert cluster.left() == []
