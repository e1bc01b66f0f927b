"""What ECS says of tasks and services, in the words that its own console shows."""

from __future__ import annotations

from datetime import UTC, datetime

from heron_scheduler_ecs.task_view import by_service, is_left, observation, waits_for
from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.managed_job import ContainerRequest
from heron_scheduler_kit.managed.rest_api import Json

_REQUEST = ContainerRequest(1, "1-a", 0.5, 1000)


def _task(second: int, status: str, **more: object) -> Json:
    made = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return {"taskArn": f"task/c/{second}", "group": "service:s", "createdAt": made, "lastStatus": status, **more}


def test_a_running_task_is_up_with_its_place_and_size() -> None:
    """The place of a container in `heron status`: zone, address, and that the size was rounded up."""
    details = [{"name": "subnetId", "value": "subnet-1"}, {"name": "privateIPv4Address", "value": "10.0.1.7"}]
    task = _task(
        1, "RUNNING", cpu="512", memory="1024", availabilityZone="eu-west-1a", attachments=[{"details": details}]
    )
    assert observation(_REQUEST, [task], {}) == Observation(
        True, "eu-west-1a, 10.0.1.7, 0.5 vCPU, 1024 MiB, rounded up from 0.5 vCPU, 1000 MiB"
    )


def test_a_task_that_is_being_stopped_still_runs_beside_its_successor() -> None:
    """ECS reports RUNNING until the processes are told to end; both tasks belong to the place."""
    old, new = _task(1, "RUNNING", desiredStatus="STOPPED"), _task(2, "PENDING")
    assert observation(_REQUEST, [old, new], {}).up


def test_the_newest_stopped_task_says_why() -> None:
    """`CannotPullContainerError` is ECS's reason, `OutOfMemoryError` that of the container."""
    image = "CannotPullContainerError: pull image manifest has been retried 1 time(s): not found"
    old = _task(1, "STOPPED", stoppedReason="Task failed to start")
    pull = _task(2, "STOPPED", stoppedReason=image, containers=[{"name": "heron"}])
    assert observation(_REQUEST, [old, pull], {}) == Observation(False, "", image)
    memory = {"exitCode": 137, "reason": "OutOfMemoryError: Container killed due to memory usage"}
    killed = _task(3, "STOPPED", stoppedReason="Essential container in task exited", containers=[memory])
    assert observation(_REQUEST, [pull, killed], {}).reason == (
        "Essential container in task exited; OutOfMemoryError: Container killed due to memory usage; exit code 137"
    )


def test_a_service_without_a_task_says_what_it_waits_for() -> None:
    """The newest event that names trouble; a steady state of earlier days is none."""
    room = "(service s) was unable to place a task because no container instance met all of its requirements."
    service: Json = {
        "status": "ACTIVE",
        "events": [{"message": room}, {"message": "(service s) has reached a steady state."}],
    }
    assert observation(_REQUEST, [], service) == Observation(False, "", room)
    assert waits_for({"status": "ACTIVE", "events": [{"message": "(service s) has reached a steady state."}]}) == ""
    assert waits_for({"status": "DRAINING", "serviceName": "s"}) == "service s is DRAINING"


def test_a_deployment_that_the_circuit_breaker_has_stopped_is_named_with_the_last_reason() -> None:
    """ECS starts no further task then."""
    said = "ECS deployment circuit breaker: tasks failed to start."
    service: Json = {"status": "ACTIVE", "deployments": [{"rolloutState": "FAILED", "rolloutStateReason": said}]}
    task = _task(2, "STOPPED", containers=[{"exitCode": 1}])
    assert observation(_REQUEST, [task], service).reason == f"exit code 1; {said}"


def test_tasks_are_left_until_their_containers_have_ended() -> None:
    """While only the network interface is removed, no process runs."""
    left = [
        each
        for each in ("PROVISIONING", "PENDING", "RUNNING", "STOPPING", "DEPROVISIONING", "STOPPED")
        if is_left(_task(1, each))
    ]
    assert left == ["PROVISIONING", "PENDING", "RUNNING", "STOPPING"]
    tasks = by_service([_task(3, "RUNNING"), _task(1, "STOPPED"), {**_task(2, "RUNNING"), "group": "family:x"}])
    assert [each["taskArn"] for each in tasks["s"]] == ["task/c/1", "task/c/3"]
