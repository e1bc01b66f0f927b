"""The objects of a job in AWS: what a person finds there, and what ECS is told to do."""

from __future__ import annotations

import json
from typing import cast

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_ecs.task_spec import TopologyObjects, covers, new_place
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields, items

_REQUESTS = (ContainerRequest(0, "0-aaaaaaaa", 0.6, 512), ContainerRequest(1, "1-bbbbbbbb", 2.1, 1152))
_JOB = ManagedJob("words", "words-1", "ann", "team", "prod", _REQUESTS, standbys=1)
_SECRET = "arn:aws:secretsmanager:eu-west-1:1:secret:heron/words/1-bbbbbbbb-AbCdEf"
_REQUIRED = {"aws": {"bucket": "b"}, "image": "heron:1", "execution_role": "run", "subnets": ["subnet-1"]}


def _options(**changed: object) -> EcsOptions:
    return decode_options({**_REQUIRED, **changed}, EcsOptions, "scheduler")


def _definition(options: EcsOptions, request: ContainerRequest = _REQUESTS[1]) -> Json:
    return TopologyObjects("words", options).task_definition(_JOB, request, _SECRET, "eu-west-1")


def _service(options: EcsOptions, request: ContainerRequest = _REQUESTS[1]) -> Json:
    return TopologyObjects("words", options).service_spec(_JOB, request, "heron-words:2")


def test_a_task_gets_its_launch_file_by_reference() -> None:
    """Everyone who may read task definitions sees them; the secret is not in there."""
    (container,) = items(_definition(_options(env={"A": "1"}))["containerDefinitions"])
    assert container["secrets"] == [{"name": "HERON_LAUNCH", "valueFrom": _SECRET}]
    assert container["environment"] == [{"name": "A", "value": "1"}]
    assert (container["entryPoint"], container["command"]) == (
        ["python3"],
        ["-P", "-m", "heron_scheduler_ecs.task_process"],
    )
    secret = TopologyObjects("words", _options()).secret_spec(_JOB, _REQUESTS[1], b"\0launch")
    assert (secret["Name"], secret["SecretString"]) == ("heron/words/1-bbbbbbbb", "AGxhdW5jaA==")


def test_a_task_on_fargate_has_a_size_of_fargate_and_its_roles() -> None:
    """ECS refuses other sizes. The disk counts only above what a task has anyway."""
    made = _definition(_options(task_role="read", architecture="ARM64"))
    assert (made["family"], made["cpu"], made["memory"]) == ("heron-words", "4096", "8192")
    assert (made["executionRoleArn"], made["taskRoleArn"]) == ("run", "read")
    assert fields(made["runtimePlatform"])["cpuArchitecture"] == "ARM64"
    assert "ephemeralStorage" not in made
    large = _definition(_options(), ContainerRequest(1, "1-bbbbbbbb", 2.1, 1152, 30_000))
    assert large["ephemeralStorage"] == {"sizeInGiB": 30}


def test_logs_go_to_a_stream_that_names_the_container() -> None:
    """`heron logs` reads the stream of the newest task; options of the profile are passed on."""
    options = _options(log_group="/heron", log_options={"mode": "non-blocking"}, stop_grace_s=6.0)
    (container,) = items(_definition(options)["containerDefinitions"])
    assert fields(container["logConfiguration"])["options"] == {
        "mode": "non-blocking",
        "awslogs-group": "/heron",
        "awslogs-region": "eu-west-1",
        "awslogs-stream-prefix": "heron-words-1-bbbbbbbb",
    }
    assert container["stopTimeout"] == 8
    assert container["name"] == "heron"
    assert TopologyObjects("words", options).log_stream("1-bbbbbbbb", "abc") == "heron-words-1-bbbbbbbb/heron/abc"


def test_a_service_keeps_one_task_and_stops_after_failed_starts() -> None:
    """Two tasks of one container at once would cost an attempt; a wrong image must not be started for ever."""
    made = _service(_options(security_groups=["sg-1"], assign_public_ip=True))
    assert (made["serviceName"], made["desiredCount"], made["launchType"]) == ("heron-words-1-bbbbbbbb", 1, "FARGATE")
    deployment = fields(made["deploymentConfiguration"])
    assert deployment["maximumPercent"] == 100
    assert deployment["deploymentCircuitBreaker"] == {"enable": True, "rollback": False}
    assert made["networkConfiguration"] == {
        "awsvpcConfiguration": {"subnets": ("subnet-1",), "securityGroups": ("sg-1",), "assignPublicIp": "ENABLED"}
    }
    marks = {str(each["key"]): each["value"] for each in items(made["tags"])}
    assert marks == {
        "heron:topology": "words",
        "heron:run": "words-1",
        "heron:container": "1",
        "heron:owner": "ann",
        "heron:role": "team",
        "heron:env": "prod",
    }
    assert len(str(made["clientToken"])) <= 36


def test_capacity_providers_replace_the_launch_type() -> None:
    """ECS refuses both in one request; the task still has a size of Fargate."""
    options = _options(capacity_providers=[{"name": "FARGATE_SPOT", "weight": 3}, {"name": "FARGATE", "base": 1}])
    made = _service(options)
    assert "launchType" not in made
    assert made["capacityProviderStrategy"] == [
        {"capacityProvider": "FARGATE_SPOT", "weight": 3, "base": 0},
        {"capacityProvider": "FARGATE", "weight": 1, "base": 1},
    ]


def test_on_ec2_managers_are_kept_apart_and_tasks_are_placed() -> None:
    """Each container is a service, so only a condition about the other's group keeps two of them apart."""
    placed = {"placement_constraints": ["attribute:zone == a"], "placement_strategies": [["spread", "instanceId"]]}
    options = _options(launch_type="EC2", managers_apart=True, **placed)
    made = _service(options)
    assert made["launchType"] == "EC2"
    assert made["placementConstraints"] == [
        {"type": "memberOf", "expression": "attribute:zone == a"},
        {"type": "memberOf", "expression": "not(task:group == service:heron-words-0-aaaaaaaa)"},
    ]
    assert made["placementStrategy"] == [{"type": "spread", "field": "instanceId"}]
    other = ContainerRequest(2, "2-cccccccc", 1.0, 512)
    assert len(cast("list[Json]", _service(options, other)["placementConstraints"])) == 1


def test_services_of_a_topology_are_found_by_their_names() -> None:
    """Another topology whose name begins with the same letters is not touched."""
    pattern = TopologyObjects("t", _options()).services
    found = pattern.fullmatch("arn:aws:ecs:r:1:service/c/heron-t-0-0123abcd")
    assert found
    assert found[1] == "0-0123abcd"
    assert not pattern.fullmatch("arn:aws:ecs:r:1:service/c/heron-t-2-0-0123abcd")
    assert not pattern.fullmatch("arn:aws:ecs:r:1:service/c/web")
    assert TopologyObjects("t-2", _options()).services.fullmatch("arn:aws:ecs:r:1:service/c/heron-t-2-0-0123abcd")
    place = new_place(7)
    assert place != new_place(7)
    assert pattern.fullmatch(f"arn:aws:ecs:r:1:service/c/heron-t-{place}")


def test_an_unchanged_definition_is_recognised_with_what_aws_adds() -> None:
    """ECS answers with defaults, and in an order of its own."""
    wanted = _definition(_options(env={"A": "1", "B": "2"}))
    found = cast("Json", json.loads(json.dumps({**wanted, "revision": 3, "status": "ACTIVE"})))
    (container,) = items(found["containerDefinitions"])
    container.update(cpu=0, mountPoints=[], environment=[*items(container["environment"])[::-1]])
    assert covers(found, wanted)
    assert not covers({**found, "memory": "16384"}, wanted)
    container["environment"] = items(container["environment"])[:1]
    assert not covers(found, wanted)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"placement_constraints": ["x"]}, "are for EC2"),
        ({"managers_apart": True}, "are for EC2"),
        ({"launch_type": "EC2", "assign_public_ip": True}, "assign_public_ip is for FARGATE"),
        ({"log_options": {"awslogs-group": "x"}}, "use log_group"),
        ({"subnets": []}, "subnets"),
    ],
)
def test_options_that_ecs_would_refuse_are_refused_before(wrong: dict[str, object], said: str) -> None:
    """With the key to correct."""
    with pytest.raises(ConfigError, match=said):
        _options(**wrong)


def test_on_ec2_tasks_keep_away_from_blocked_instances() -> None:
    """A service that moves gets the constraints of a new one, and starts its task again."""
    options = _options(launch_type="EC2", placement_constraints=("attribute:rack == r1",))
    objects = TopologyObjects("words", options, frozenset({"i-2", "i-1"}))
    expressions = ["attribute:rack == r1", "not(ec2InstanceId in [i-1, i-2])"]
    wanted = [{"type": "memberOf", "expression": each} for each in expressions]
    assert objects.service_spec(_JOB, _REQUESTS[1], "heron-words:2")["placementConstraints"] == wanted
    moved = objects.moved_service(_JOB, _REQUESTS[1].place)
    assert moved["placementConstraints"] == wanted
    assert (moved["service"], moved["forceNewDeployment"]) == (objects.service(_REQUESTS[1].place), True)
