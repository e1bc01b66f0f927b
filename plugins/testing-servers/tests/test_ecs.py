"""The ECS for tests keeps the published contract, as users of boto3 see it."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from heron_testing.waiting import Eventually
from heron_testing_servers.ecs import EcsServer
from heron_testing_servers.http_service import Fault

Json = dict[str, Any]

FARGATE = {"networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512"}
NETWORK = {"awsvpcConfiguration": {"subnets": ["subnet-1"], "securityGroups": [], "assignPublicIp": "DISABLED"}}
BREAKER = {"deploymentCircuitBreaker": {"enable": True, "rollback": True}}
NO_OVERLAP = {"minimumHealthyPercent": 0, "maximumPercent": 100}


class Account:
    """Clients of one user, and services that end with the test."""

    def __init__(self, server: EcsServer, prefix: str, eventually: Eventually) -> None:
        self.server = server
        self.prefix = prefix
        self._eventually = eventually
        self._clients: dict[tuple[str, str], Any] = {}
        self.ecs = self.client("ecs")

    def client(self, service: str, keys: tuple[str, str] | None = None, region: str = "us-east-1") -> Any:  # noqa: ANN401
        key, secret = keys or (self.server.access_key, self.server.secret_key)
        made = self._clients.get((service, key + secret + region)) or boto3.client(
            service,
            region_name=region,
            endpoint_url=self.server.url,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(retries={"total_max_attempts": 1}),
        )
        self._clients[service, key + secret + region] = made
        return made

    def register(self, *command: str, image: str = "heron:1", **more: object) -> str:
        container = {
            "name": "main",
            "image": image,
            "entryPoint": ["/bin/sh", "-c"],
            "command": list(command or ("exec sleep 600",)),
            **more,
        }
        given: Json = {"executionRoleArn": self.server.execution_role}
        made = self.ecs.register_task_definition(
            family=self.prefix, containerDefinitions=[container], **{**FARGATE, **given}
        )
        return str(made["taskDefinition"]["taskDefinitionArn"])

    def create(self, definition: str, name: str = "one", **more: object) -> Json:
        given = {"launchType": "FARGATE", "networkConfiguration": NETWORK, "desiredCount": 1, **more}
        made = self.ecs.create_service(
            cluster="tests", serviceName=f"{self.prefix}-{name}", taskDefinition=definition, **given
        )
        return dict(made["service"])

    def service(self, name: str = "one") -> Json:
        return dict(self.ecs.describe_services(cluster="tests", services=[f"{self.prefix}-{name}"])["services"][0])

    def tasks(self, status: str = "RUNNING", name: str = "one") -> list[Json]:
        names = self.ecs.list_tasks(cluster="tests", serviceName=f"{self.prefix}-{name}", desiredStatus=status)[
            "taskArns"
        ]
        return list(self.ecs.describe_tasks(cluster="tests", tasks=names)["tasks"]) if names else []

    def settle(self, name: str = "one") -> None:
        def settled() -> bool:
            found = self.service(name)
            return [each["rolloutState"] for each in found["deployments"]] == ["COMPLETED"] and found[
                "pendingCount"
            ] == 0

        self._eventually(settled, what="the deployment is complete")

    def running(self, name: str = "one") -> list[Json]:
        return [each for each in self.tasks(name=name) if each["lastStatus"] == "RUNNING"]

    def pid(self, task: Json) -> int:
        return self.server.containers()[task["containers"][0]["runtimeId"]]

    def close(self) -> None:
        for each in self.ecs.get_paginator("list_services").paginate(cluster="tests"):
            for name in each["serviceArns"]:
                self.ecs.delete_service(cluster="tests", service=name, force=True)
        self._eventually(lambda: not self.server.containers(), what="no container is left")
        for client in self._clients.values():
            client.close()


@pytest.fixture
def account(ecs: EcsServer, request: pytest.FixtureRequest, eventually: Eventually) -> Iterator[Account]:
    """The administrator, with names of its own."""
    made = Account(ecs, request.node.name.replace("[", "-").rstrip("]")[:60], eventually)
    yield made
    ecs.clear_faults()
    ecs.hold("")
    ecs.set_fargate(capacity=True)
    made.close()


def test_a_service_keeps_its_tasks_running(account: Account, eventually: Eventually) -> None:
    """A task that ends is replaced; its exit code and reasons stay visible."""
    account.create(account.register(), desiredCount=2)
    account.settle()
    first, second = account.running()
    os.kill(account.pid(first), signal.SIGKILL)
    eventually(
        lambda: len(account.running()) == 2 and first["taskArn"] not in [each["taskArn"] for each in account.running()]
    )
    (stopped,) = account.tasks("STOPPED")
    assert stopped["taskArn"] == first["taskArn"]
    assert stopped["stopCode"] == "EssentialContainerExited"
    assert stopped["stoppedReason"] == "Essential container in task exited"
    assert stopped["containers"][0]["exitCode"] == 137
    assert second["taskArn"] in [each["taskArn"] for each in account.running()]
    events = [each["message"] for each in account.service()["events"]]
    assert any("has reached a steady state" in each for each in events)
    assert any("has started 2 tasks: (task " in each for each in events)


def test_a_service_is_scaled_and_deleted(account: Account, eventually: Eventually) -> None:
    """Deletion of a service above 0 needs force; it drains, and is described as inactive."""
    service = account.create(account.register())["serviceName"]
    account.settle()
    (kept,) = account.running()
    account.ecs.update_service(cluster="tests", service=service, desiredCount=3)
    eventually(lambda: len(account.running()) == 3)
    account.ecs.update_service(cluster="tests", service=service, desiredCount=1)
    eventually(lambda: len(account.running()) == 1 and len(account.tasks("STOPPED")) == 2)
    assert account.running()[0]["taskArn"] == kept["taskArn"]
    assert "Scaling activity initiated by (deployment ecs-svc/" in account.tasks("STOPPED")[0]["stoppedReason"]
    with pytest.raises(ClientError, match="The service cannot be stopped while it is scaled above 0"):
        account.ecs.delete_service(cluster="tests", service=service)
    assert account.ecs.delete_service(cluster="tests", service=service, force=True)["service"]["status"] == "DRAINING"
    eventually(lambda: account.service()["status"] == "INACTIVE")
    with pytest.raises(account.ecs.exceptions.ServiceNotActiveException):
        account.ecs.update_service(cluster="tests", service=service, desiredCount=1)
    account.create(account.register())
    account.settle()


def test_a_new_revision_replaces_the_tasks(account: Account) -> None:
    """Registration numbers revisions; an update without a change replaces nothing."""
    first = account.register()
    service = account.create(first)["serviceName"]
    account.settle()
    (old,) = account.running()
    account.ecs.update_service(cluster="tests", service=service, taskDefinition=first)
    assert len(account.service()["deployments"]) == 1
    second = account.register()
    assert (first.rpartition(":")[2], second.rpartition(":")[2]) == ("1", "2")
    account.ecs.update_service(cluster="tests", service=service, taskDefinition=second)
    account.settle()
    (new,) = account.running()
    assert new["taskArn"] != old["taskArn"]
    assert new["taskDefinitionArn"] == second
    account.ecs.update_service(cluster="tests", service=service, forceNewDeployment=True)
    account.settle()
    assert account.running()[0]["taskArn"] != new["taskArn"]
    account.ecs.deregister_task_definition(taskDefinition=first)
    with pytest.raises(ClientError, match="TaskDefinition is inactive"):
        account.create(first, "two")
    listed = account.ecs.list_task_definitions(familyPrefix=account.prefix)["taskDefinitionArns"]
    assert listed == [second]


def test_a_task_that_is_stopping_does_not_hold_its_successor(account: Account, eventually: Eventually) -> None:
    """The maximum counts tasks that are RUNNING or PENDING, so two may run for a moment. SIGKILL follows SIGTERM."""
    stubborn = account.register("trap '' TERM; echo ready; while :; do sleep 0.05; done", stopTimeout=100)
    service = account.create(stubborn, deploymentConfiguration=NO_OVERLAP)["serviceName"]
    account.settle()
    (old,) = account.running()
    output = account.server.folder / "containers" / old["containers"][0]["runtimeId"] / "sandbox" / "stdout"
    eventually(output.read_text)
    pid = account.pid(old)
    account.ecs.update_service(cluster="tests", service=service, taskDefinition=account.register())
    eventually(lambda: [each["taskArn"] != old["taskArn"] for each in account.running()] == [True])
    (stopping,) = account.tasks("STOPPED")
    assert (stopping["lastStatus"], stopping["desiredStatus"]) == ("STOPPING", "STOPPED")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: account.tasks("STOPPED")[0]["lastStatus"] == "STOPPED")
    assert account.tasks("STOPPED")[0]["containers"][0]["exitCode"] == 137


def test_a_failing_image_opens_the_circuit_breaker(account: Account, eventually: Eventually) -> None:
    """After three failures the deployment is rolled back; reasons name the image."""
    service = account.create(account.register(), deploymentConfiguration=BREAKER)["serviceName"]
    account.settle()
    (kept,) = account.running()
    account.ecs.update_service(cluster="tests", service=service, taskDefinition=account.register(image="missing:1"))
    eventually(lambda: any("rolling back" in each["message"] for each in account.service()["events"]))
    account.settle()
    assert account.running() == [kept]
    assert account.service()["taskDefinition"] == kept["taskDefinitionArn"]
    failed = [each for each in account.tasks("STOPPED") if each["stopCode"] == "TaskFailedToStart"]
    assert len(failed) == 3
    assert failed[0]["stoppedReason"].startswith("CannotPullContainerError: pull image manifest has been retried")
    assert failed[0]["containers"][0]["reason"] == failed[0]["stoppedReason"]


def test_without_a_rollback_a_failed_deployment_starts_nothing_more(account: Account, eventually: Eventually) -> None:
    """The deployment says why it failed."""
    breaker = {"deploymentCircuitBreaker": {"enable": True, "rollback": False}}
    account.create(account.register(image="missing:1"), deploymentConfiguration=breaker)
    eventually(lambda: account.service()["deployments"][0]["rolloutState"] == "FAILED")
    (deployment,) = account.service()["deployments"]
    assert deployment["rolloutStateReason"] == "ECS deployment circuit breaker: tasks failed to start."
    assert (deployment["failedTasks"], len(account.tasks("STOPPED"))) == (3, 3)


def test_memory_and_spot_end_tasks_with_reasons(account: Account, eventually: Eventually) -> None:
    """The container has the reason, or the task."""
    account.create(account.register())
    account.settle()
    (task,) = account.running()
    account.server.out_of_memory(task["taskArn"])
    eventually(lambda: account.tasks("STOPPED"))
    eventually(lambda: account.tasks("STOPPED")[0]["lastStatus"] == "STOPPED")
    (container,) = account.tasks("STOPPED")[0]["containers"]
    assert container["exitCode"] == 137
    assert container["reason"] == "OutOfMemoryError: Container killed due to memory usage"
    (task,) = eventually(account.running)
    account.server.interrupt(task["taskArn"])
    eventually(lambda: len(account.tasks("STOPPED")) == 2)
    codes = {each["stopCode"] for each in account.tasks("STOPPED")}
    assert codes == {"EssentialContainerExited", "SpotInterruption"}


def test_a_service_without_capacity_says_so_in_its_events(account: Account, eventually: Eventually) -> None:
    """Fargate without capacity, and instances without memory; both are tried again."""
    account.server.set_fargate(capacity=False)
    account.create(account.register())
    eventually(lambda: account.service()["events"])
    assert "was unable to place a task. Reason: Capacity is unavailable" in account.service()["events"][0]["message"]
    account.server.set_fargate(capacity=True)
    account.settle()
    container = {"name": "main", "image": "heron", "memory": 20000, "command": ["sleep", "600"]}
    made = account.ecs.register_task_definition(family="big", networkMode="host", containerDefinitions=[container])
    big = made["taskDefinition"]["taskDefinitionArn"]
    account.ecs.create_service(cluster="tests", serviceName=f"{account.prefix}-big", taskDefinition=big, desiredCount=1)
    eventually(lambda: account.service("big")["events"])
    assert "has insufficient memory available" in account.service("big")["events"][0]["message"]
    refused = account.ecs.run_task(cluster="tests", taskDefinition=big, count=1)
    assert [each["reason"] for each in refused["failures"]] == ["RESOURCE:MEMORY"]


def test_instances_are_chosen_by_constraints_and_strategies(account: Account, eventually: Eventually) -> None:
    """A terminated instance loses its tasks, which start elsewhere."""
    container = {"name": "main", "image": "heron", "memory": 100, "command": ["sleep", "600"]}
    account.ecs.register_task_definition(family="small", networkMode="host", containerDefinitions=[container])
    spread = {"placementStrategy": [{"type": "spread", "field": "instanceId"}]}
    rack = {"placementConstraints": [{"type": "memberOf", "expression": "attribute:rack == r2"}]}
    for name, more, count in (("spread", spread, 2), ("rack", rack, 1)):
        given: Json = {"serviceName": f"{account.prefix}-{name}", "desiredCount": count, **more}
        account.ecs.create_service(cluster="tests", taskDefinition="small", **given)
        account.settle(name)
    assert len({each["containerInstanceArn"] for each in account.running("spread")}) == 2
    (instance,) = {each["containerInstanceArn"] for each in account.running("rack")}
    shown = account.ecs.describe_container_instances(cluster="tests", containerInstances=[instance])
    assert shown["containerInstances"][0]["attributes"] == [{"name": "rack", "value": "r2"}]
    account.server.set_instance("i-2", running=False)
    eventually(lambda: {each["containerInstanceArn"][-3:] for each in account.running("spread")} == {"i-1"})
    reasons = {each["stoppedReason"] for each in account.tasks("STOPPED", "spread")}
    assert reasons == {"Host EC2 (instance i-2) terminated."}
    account.server.set_instance("i-2", running=True)
    account.settle("rack")


def test_a_task_gets_secrets_and_its_output_is_in_the_logs(account: Account, eventually: Eventually) -> None:
    """Secrets come by reference from Secrets Manager and SSM; a missing one stops the task before its start."""
    secrets = account.client("secretsmanager")
    secret = secrets.create_secret(Name=account.prefix, SecretString=json.dumps({"key": "one"}))["ARN"]
    account.client("ssm").put_parameter(Name=f"/{account.prefix}", Value="two", Type="SecureString")
    account.client("logs").create_log_group(logGroupName=account.prefix)
    options = {"awslogs-group": account.prefix, "awslogs-region": "us-east-1", "awslogs-stream-prefix": "heron"}
    more: Json = {
        "secrets": [
            {"name": "ALL", "valueFrom": secret},
            {"name": "KEY", "valueFrom": f"{secret}:key::"},
            {"name": "PARAMETER", "valueFrom": f"/{account.prefix}"},
        ],
        "environment": [{"name": "PLAIN", "value": "three"}],
        "logConfiguration": {"logDriver": "awslogs", "options": options},
    }
    account.create(account.register('echo "$ALL $KEY $PARAMETER $PLAIN"; echo lost >&2; exec sleep 600', **more))
    account.settle()
    (task,) = account.running()
    stream = f"heron/main/{task['taskArn'].rpartition('/')[2]}"
    logs = account.client("logs")

    def lines() -> list[str]:
        found = logs.get_log_events(logGroupName=account.prefix, logStreamName=stream, startFromHead=True)
        return [each["message"] for each in found["events"]]

    eventually(lambda: lines() == ['{"key": "one"} one two three', "lost"])
    missing: Json = {"secrets": [{"name": "ALL", "valueFrom": "/no/such"}]}
    account.create(account.register(**missing), "two")
    eventually(lambda: account.tasks("STOPPED", "two"))
    reason = account.tasks("STOPPED", "two")[0]["stoppedReason"]
    assert reason.startswith("ResourceInitializationError: unable to pull secrets or registry auth")
    assert "/no/such" in reason


def test_the_execution_role_needs_rights(account: Account, eventually: Eventually) -> None:
    """A role that does not exist is refused; one without a right stops the task."""
    policy = {"Statement": [{"Effect": "Allow", "Action": "ssm:GetParameters", "Resource": "*"}]}
    role = account.server.add_role("poor", policy)
    secret = account.client("secretsmanager").create_secret(Name=account.prefix, SecretString="s")["ARN"]
    container = {"name": "main", "image": "heron", "secrets": [{"name": "S", "valueFrom": secret}]}
    for name in (role, role.replace("poor", "unknown")):
        account.ecs.register_task_definition(
            family=account.prefix, executionRoleArn=name, containerDefinitions=[container], **FARGATE
        )
    account.create(f"{account.prefix}:1")
    eventually(lambda: account.tasks("STOPPED"))
    assert "not authorized to perform: secretsmanager:GetSecretValue" in account.tasks("STOPPED")[0]["stoppedReason"]
    with pytest.raises(ClientError, match="ECS was unable to assume the role"):
        account.create(f"{account.prefix}:2", "two")


def test_lists_have_pages_and_descriptions_have_limits(account: Account) -> None:
    """Ten services a page, at most 100; ten names in a question."""
    definition = account.register()
    for number in range(12):
        account.create(definition, str(number), desiredCount=0)
    first = account.ecs.list_services(cluster="tests")
    assert len(first["serviceArns"]) == 10
    second = account.ecs.list_services(cluster="tests", nextToken=first["nextToken"])
    assert len(second["serviceArns"]) == 2
    assert "nextToken" not in second
    assert len(account.ecs.list_services(cluster="tests", maxResults=100)["serviceArns"]) == 12
    names = [*first["serviceArns"], *second["serviceArns"]]
    with pytest.raises(account.ecs.exceptions.InvalidParameterException):
        account.ecs.describe_services(cluster="tests", services=names[:11])
    answer = account.ecs.describe_services(cluster="tests", services=[names[0], "none"])
    assert [each["serviceArn"] for each in answer["services"]] == [names[0]]
    assert [each["reason"] for each in answer["failures"]] == ["MISSING"]
    missing = account.ecs.describe_tasks(cluster="tests", tasks=["none"])
    assert [each["reason"] for each in missing["failures"]] == ["MISSING"]


def test_requests_are_refused_as_by_aws(account: Account) -> None:
    """Each with the type that boto3 has for it."""
    definition = account.register()
    account.create(definition, desiredCount=0)
    assert account.create(definition, desiredCount=0)["serviceName"] == account.service()["serviceName"]
    with pytest.raises(ClientError, match="Creation of service was not idempotent"):
        account.create(definition, desiredCount=1)
    with pytest.raises(account.ecs.exceptions.ClusterNotFoundException):
        account.ecs.list_services(cluster="other")
    with pytest.raises(account.ecs.exceptions.ClusterNotFoundException):
        account.client("ecs", region="eu-west-1").list_services(cluster="tests")
    with pytest.raises(account.ecs.exceptions.ServiceNotFoundException):
        account.ecs.update_service(cluster="tests", service="none", desiredCount=0)
    given: Json = {**FARGATE, "memory": "3000", "containerDefinitions": [{"name": "main", "image": "heron"}]}
    with pytest.raises(account.ecs.exceptions.ClientException, match="No Fargate configuration exists"):
        account.ecs.register_task_definition(family="wrong", **given)
    with pytest.raises(account.ecs.exceptions.InvalidParameterException, match="must be provided"):
        account.ecs.create_service(cluster="tests", serviceName="s", taskDefinition=definition, launchType="FARGATE")


def test_keys_and_policies_are_checked(account: Account) -> None:
    """A right is an action on a resource; tags and roles need rights of their own."""
    arn = f"arn:aws:ecs:us-east-1:123456789012:service/tests/{account.prefix}-*"
    cluster = {"ArnEquals": {"ecs:cluster": "arn:aws:ecs:us-east-1:123456789012:cluster/tests"}}
    statements = [
        {"Effect": "Allow", "Action": ["ecs:Describe*"], "Resource": arn},
        {"Effect": "Allow", "Action": "ecs:ListServices", "Resource": "*", "Condition": cluster},
        {"Effect": "Allow", "Action": "ecs:RegisterTaskDefinition", "Resource": "*"},
        {"Effect": "Deny", "Action": "ecs:DescribeServices", "Resource": f"{arn[:-1]}secret"},
    ]
    keys = account.server.add_user("reader", {"Version": "2012-10-17", "Statement": statements})
    reader = account.client("ecs", keys)
    reader.describe_services(cluster="tests", services=[f"{account.prefix}-one"])
    reader.list_services(cluster="tests")
    denied: list[tuple[Any, Json, str]] = [
        (reader.describe_services, {"services": ["other"]}, "ecs:DescribeServices"),
        (reader.describe_services, {"services": [f"{account.prefix}-secret"]}, "ecs:DescribeServices"),
        (reader.delete_service, {"service": f"{account.prefix}-one"}, "ecs:DeleteService"),
    ]
    for ask, given, action in denied:
        with pytest.raises(ClientError, match=f"not authorized to perform: {action} on resource: ") as refused:
            ask(cluster="tests", **given)
        assert refused.value.response["Error"]["Code"] == "AccessDeniedException"
    container = {"name": "main", "image": "heron", "memory": 10}
    with pytest.raises(ClientError, match="iam:PassRole on resource: arn:aws:iam::123456789012:role/x"):
        reader.register_task_definition(family="f", executionRoleArn="x", containerDefinitions=[container])
    tags = [{"key": "a", "value": "b"}]
    with pytest.raises(ClientError, match="ecs:TagResource"):
        reader.register_task_definition(family="f", containerDefinitions=[container], tags=tags)
    with pytest.raises(ClientError, match="secretsmanager:GetSecretValue"):
        account.client("secretsmanager", keys).get_secret_value(SecretId="any")
    assert account.client("sts", keys).get_caller_identity()["Account"] == "123456789012"
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        account.client("ecs", ("AKIAUNKNOWN", "none")).list_clusters()
    with pytest.raises(ClientError, match="InvalidSignatureException"):
        account.client("ecs", (keys[0], "wrong")).list_clusters()
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        account.client("sts", (keys[0], "wrong")).get_caller_identity()


def test_an_answer_that_is_lost_was_work_that_is_done(account: Account) -> None:
    """A repeated creation with the same settings answers with the same service; throttling does nothing."""
    definition = account.register()
    account.server.fault(Fault("ecs:CreateService", "drop"))
    with pytest.raises(ConnectionClosedError):
        account.create(definition)
    account.create(definition)
    account.settle()
    assert len(account.running()) == 1
    throttled = json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"})
    account.server.fault(Fault("ecs:ListServices", "refuse", status=400, body=throttled))
    with pytest.raises(ClientError, match="Rate exceeded") as refused:
        account.ecs.list_services(cluster="tests")
    assert refused.value.response["Error"]["Code"] == "ThrottlingException"


def test_a_restart_keeps_services_and_tasks(account: Account, eventually: Eventually) -> None:
    """Tasks run on without the control plane; what ended meanwhile is replaced."""
    account.create(account.register(), desiredCount=2)
    account.settle()
    first, second = account.running()
    pid = account.pid(first)
    account.server.process.kill()
    os.kill(pid, signal.SIGKILL)
    account.server.start()
    eventually(
        lambda: len(account.running()) == 2 and first["taskArn"] not in [each["taskArn"] for each in account.running()]
    )
    assert second["taskArn"] in [each["taskArn"] for each in account.running()]


def test_tasks_come_to_their_statuses_one_after_the_other(account: Account, eventually: Eventually) -> None:
    """A test can hold them where AWS takes its time."""
    account.server.hold("PROVISIONING")
    service = account.create(account.register())["serviceName"]
    (task,) = eventually(account.tasks)
    assert (task["lastStatus"], account.service()["pendingCount"]) == ("PROVISIONING", 1)
    account.server.hold("DEPROVISIONING")
    eventually(account.running)
    account.ecs.update_service(cluster="tests", service=service, desiredCount=0)
    eventually(lambda: [each["lastStatus"] for each in account.tasks("STOPPED")] == ["DEPROVISIONING"])
    account.server.hold("")
    assert [each["lastStatus"] for each in account.tasks("STOPPED")] == ["STOPPED"]


def test_a_container_finds_its_task_in_the_metadata(account: Account, eventually: Eventually) -> None:
    """The address of its network interface is there and in the description of the task."""
    account.create(account.register("echo $ECS_CONTAINER_METADATA_URI_V4; exec sleep 600"))
    account.settle()
    (task,) = account.running()
    output = account.server.folder / "containers" / task["containers"][0]["runtimeId"] / "sandbox" / "stdout"
    url = eventually(lambda: output.read_text().strip())
    with urllib.request.urlopen(f"{url}/task") as answer:  # noqa: S310 - the tests' server
        found = json.load(answer)
    assert found["TaskARN"] == task["taskArn"]
    (address,) = found["Containers"][0]["Networks"][0]["IPv4Addresses"]
    assert (
        address
        == task["attachments"][0]["details"][0]["value"]
        == task["containers"][0]["networkInterfaces"][0]["privateIpv4Address"]
    )


def test_a_task_is_run_and_stopped_by_a_user(account: Account, eventually: Eventually) -> None:
    """The reason of the user stays; at most ten start at once."""
    definition = account.register()
    started = account.ecs.run_task(
        cluster="tests", taskDefinition=definition, launchType="FARGATE", networkConfiguration=NETWORK, startedBy="me"
    )
    (task,) = started["tasks"]
    names = account.ecs.list_tasks(cluster="tests", startedBy="me")["taskArns"]
    assert names == [task["taskArn"]]
    account.ecs.stop_task(cluster="tests", task=task["taskArn"], reason="enough")

    def stopped() -> Json:
        return dict(account.ecs.describe_tasks(cluster="tests", tasks=names)["tasks"][0])

    eventually(lambda: stopped()["lastStatus"] == "STOPPED")
    assert (stopped()["stopCode"], stopped()["stoppedReason"]) == ("UserInitiated", "enough")
    with pytest.raises(ClientError, match="Count must be between 1 and 10"):
        account.ecs.run_task(cluster="tests", taskDefinition=definition, count=11)
