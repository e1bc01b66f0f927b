"""Containers that do not run: the cause in the words of the cluster, with what helps, the same for all schedulers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.ipc.documents.status import ProcessStatus, TopologyStatus
from heron.spi.scheduler import ContainerStatus
from heron_health_manager.explaining.explain import explain
from heron_health_manager.explaining.explanation_text import MOST_LINES, explanation_lines
from heron_health_manager.explaining.facts import Facts

NOW_S = 1_795_612_800.0  # 2026-11-25 13:20:00 UTC
RUNNING = ContainerStatus(0, True, 1)


def facts(*containers: ContainerStatus) -> Facts:
    return Facts("words", NOW_S, NOW_S - 600.0, containers=(RUNNING, *containers))


def waits(reason: str, container_id: int = 1, attempts: int = 0) -> ContainerStatus:
    return ContainerStatus(container_id, False, attempts, reason)


# As the drivers for Kubernetes, Nomad and Slurm report them, and as YARN and ECS write them.
@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("no-image", 'ImagePullBackOff: Back-off pulling image "registry.example.org/heron:9"'),
        ("no-image", "ErrImagePull: pull access denied, repository does not exist or may require authorization"),
        ("no-image", "Driver Failure: Failed to pull `heron:9`: API error (404): manifest unknown"),
        ("no-image", "CannotPullContainerError: pull image manifest has been retried 1 time(s): not found"),
        ("quota", 'pods "heron-words-1" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=1'),
        ("quota", 'Quota limit hit "cpu exhausted (4000 needed > 1000 limit)"'),
        ("quota", "job 12 is PENDING (QOSMaxCpuPerUserLimit)"),
        ("quota", "job 12 is PENDING (AssocGrpCpuLimit)"),
        ("quota", "(service s) was unable to place a task. Reason: You've reached the limit on the number of vCPUs"),
        ("time-limit", "job 12 is PENDING (PartitionTimeLimit)"),
        ("time-limit", "job 11 is TIMEOUT"),
        ("no-right", 'pods is forbidden: User "system:serviceaccount:streams:ann" cannot create resource "pods"'),
        ("no-right", "job 12 is PENDING (AccountNotAllowed)"),
        ("no-right", "job 12 is PENDING (InvalidQOS)"),
        (
            "no-right",
            "job 12 is PENDING (Job's account not known, so it can't use this partition (physics allows physics))",
        ),
        ("no-right", "Task hook failed: open /alloc/1: permission denied"),
        ("no-right", "ResourceInitializationError: role is not authorized to perform: secretsmanager:GetSecretValue"),
        ("memory-limit", "OutOfMemoryError: Container killed due to memory usage; exit code 137"),
        ("memory-limit", "OOMKilled, exit code 137"),
        ("memory-limit", "job 11 is OUT_OF_MEMORY"),
        ("memory-limit", "Container is running beyond physical memory limits. Killing container."),
        ("no-room", "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. No preemption victims found"),
        (
            "no-room",
            "(service s) was unable to place a task because no container instance met all of its requirements.",
        ),
        ("no-room", "(service s) was unable to place a task. Reason: Capacity is unavailable at this time."),
        ("no-room", 'Dimension "memory" exhausted on 2 nodes'),
        ("no-room", 'Constraint "missing drivers": 1 nodes excluded by filter'),
        ("no-room", "No nodes were eligible for evaluation"),
        ("no-room", "job 12 is PENDING (Resources)"),
        ("no-room", "job 12 is PENDING"),
        ("no-room", "service heron-words-1a is STARTED; Queue does not have enough headroom for inner request"),
        ("no-room", "Node does not have sufficient resource for request, insufficient resources=[memory-mb]"),
        ("no-room", "service heron-words-1a is ACCEPTED; Skipping AM assignment as cluster resource is empty."),
        ("no-room", "service heron-words-1a is ACCEPTED; Queue's AM resource limit exceeded."),
        ("no-room", "service heron-words-1a is ACCEPTED; waiting for resources to be assigned for AM"),
        ("no-room", "no agent fits (UnfulfilledConstraint: 2 of 2 offers declined)"),
        ("no-room", "TASK_FAILED on a1: exited; no agent has offered resources"),
        ("no-room", "LOST on h1; PENDING: Insufficient: RAM"),
        ("memory-limit", "TASK_FAILED on a1: Memory limit exceeded: Requested: 64MB"),
        ("machine-lost", "agent 10.0.0.7 is unreachable"),
        ("machine-lost", "LOST on h1"),
        ("machine-lost", "job 11 is NODE_FAIL"),
        ("machine-lost", "Evicted: The node was low on resource: memory"),
        ("machine-lost", "its launcher or its machine was lost"),
        ("container-not-running", "job 12 is PENDING (JobHeldUser)"),
        ("container-not-running", "given up after 3 failures in a row: exit code 1: ImportError: no image"),
    ],
)
def test_the_words_of_a_cluster_name_the_cause(cause: str, reason: str) -> None:
    """The words stay in the answer, and each cause has a remedy."""
    (problem,) = explain(facts(waits(reason))).problems
    assert problem.kind == cause
    assert problem.why[0].endswith(f": {reason}")
    assert problem.action


def test_the_present_reason_counts_more_than_that_of_an_earlier_end() -> None:
    """A lost node is over; what the container waits for now is what a person can change."""
    (problem,) = explain(facts(waits("job 11 is NODE_FAIL; job 12 is PENDING (Resources)", attempts=1))).problems
    assert (problem.kind, problem.what) == ("no-room", "container 1 does not run, after 1 start")


def test_containers_with_one_cause_are_one_problem() -> None:
    """A full cluster is one problem, however many containers wait for it; each different reason is shown once."""
    first, second = "job 12 is PENDING (Resources)", "job 13 is PENDING (Priority)"
    lines = explanation_lines(explain(facts(waits(first), waits(second, 2), waits(second, 3))))
    assert lines == [
        "words: 3 of 4 containers do not run: 1, 2, 3",
        f"  why        no machine of the cluster takes it now: {first}",
        f"             container 2: {second}",
        "  to do      wait, request less for its components, or correct what the profile asks of machines",
        "             heron status words",
    ]
    assert len(lines) <= MOST_LINES


def test_a_container_that_runs_is_no_problem() -> None:
    """Its status keeps the reason of its last end."""
    assert explain(facts(ContainerStatus(1, True, 2, "job 11 is NODE_FAIL"))).problems == ()


def test_a_container_that_is_given_up_needs_a_restart() -> None:
    """The cluster does not start it again by itself."""
    (problem,) = explain(facts(waits("given up after 3 failures in a row: OOMKilled, exit code 137"))).problems
    assert problem.action == "give its components more memory, or keep less in them, then `heron restart` its container"


def test_a_death_that_is_explained_is_not_told_twice() -> None:
    """Where the executor of a container records its deaths, its scheduler repeats the last one."""
    executor = ProcessStatus(1, "executor", "running", 9, 4, restarts=3, last_error="exit code 1")
    status = TopologyStatus("words", "words-1", "running", NOW_S - 900.0, processes=(executor,))
    found = replace(facts(waits("exit code 1", attempts=4)), status=status)
    (problem,) = explain(found).problems
    assert problem.kind == "restarts"
