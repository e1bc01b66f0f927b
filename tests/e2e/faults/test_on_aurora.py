"""Topologies on the test server of Aurora with two hosts, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_scheduler_aurora.aurora_api import AuroraApi
from heron_scheduler_aurora.aurora_job import AuroraJob
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_aurora.task_states import active
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_testing.waiting import wait_until
from heron_testing_servers.aurora import AuroraCluster
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S, ClusterJournal, OnCluster, shipped_profile

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PROFILE = """\
extends: local
scheduler:
  driver: aurora
  addresses: ["{url}"]
  cluster: {cluster}
  environment: test
  observer_port: {observer}
  key_file: {key}
  python: {python}
  stable_s: 0
  stop_grace_s: 3
  start_s: 60
engine: {{heron.executor.stable.s: 0}}
"""
_LOOPS = 30


@pytest.fixture(scope="module")
def aurora(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuroraCluster]:
    """Two large hosts, because every instance requests as much as the largest container."""
    hosts = [((64.0, 131_072.0, 524_288.0), {"rack": [rack]}) for rack in "ab"]
    made = AuroraCluster(tmp_path_factory.mktemp("aurora"), hosts=hosts)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def cluster(sandbox: Sandbox, aurora: AuroraCluster) -> Iterator[AuroraCluster]:
    """Aurora with both hosts, and the profile ``cluster`` that names it."""
    aurora.start()
    key = sandbox.root / "seal.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    own = {"key": key, "python": python_in(sandbox), "cluster": cluster_name(aurora), "observer": observer_port(aurora)}
    sandbox.write_profile("cluster", _PROFILE.format(url=aurora.url, **own))
    yield aurora
    aurora.start()
    for name in aurora.hosts():
        aurora.change_host(name, "up")
    for topology in ("journal", "steady", "updating", "word_count"):  # of a failed test
        job_of(aurora, topology).kill_all()


def python_in(sandbox: Sandbox) -> Path:
    """Return an interpreter whose processes belong to the sandbox, which looks for them: it gives them its folders."""
    path = sandbox.root / "python"
    path.write_text(f'#!/bin/sh\nexec env HOME="{sandbox.home}" TMPDIR="{sandbox.tmp}" "{sys.executable}" "$@"\n')
    path.chmod(0o700)
    return path


def api_of(aurora: AuroraCluster) -> AuroraApi:
    return AuroraApi(AuroraOptions(cluster="any", addresses=(aurora.url,)))


def job_of(aurora: AuroraCluster, topology: str, role: str = "", env: str = "test") -> AuroraJob:
    """Return what a person does with a job with Aurora's own tools; the role is that of this user."""
    key: Json = {"role": role or getpass.getuser(), "environment": env, "name": topology}
    return AuroraJob(api_of(aurora), key, topology)


def cluster_name(aurora: AuroraCluster) -> str:
    """Return the name of the cluster, which every answer has."""
    return str(fields(api_of(aurora).response("getTierConfigs")["serverInfo"])["clusterName"])


def observer_port(aurora: AuroraCluster) -> int:
    """Return the port of the observers."""
    (port,) = {each["url"].rpartition(":")[2] for each in aurora.hosts().values()}
    return int(port)


class AuroraHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: AuroraCluster, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal
        self.job = job_of(cluster, "journal")

    def restart_instance(self) -> set[int]:
        """``aurora job restart`` of one instance."""
        self.job.restart(1)
        return {1}

    def lose_host(self) -> set[int]:
        """Cut a host: for Mesos its machine is lost, while the old copies of its containers still run."""
        hosts = self._hosts()
        moved = {container for container, host in hosts.items() if host == hosts[1]}
        (name,) = (name for name, each in self.cluster.hosts().items() if each["hostname"] == hosts[1])
        self.cluster.change_host(name, "partitioned")
        wait_until(lambda: hosts[1] not in self._hosts().values(), BACK_S, f"{name} is lost")
        return moved

    def lose_scheduler(self) -> set[int]:
        """Kill the scheduler for half a minute: no container notices."""
        self.cluster.process.kill()
        self.journal.flows_on("the end of Aurora")
        self.cluster.start()
        return set()

    def _hosts(self) -> dict[int, str]:
        """Return the hosts of the instances."""
        tasks = active(self.job.tasks())
        return {number: str(fields(each["assignedTask"]).get("slaveHost")) for number, each in tasks.items()}


@pytest.mark.parametrize("names", [("restart_instance", "lose_host"), ("lose_scheduler",)], ids="-".join)
def test_no_line_is_lost_whatever_aurora_does(sandbox: Sandbox, cluster: AuroraCluster, names: tuple[str, ...]) -> None:
    """At least once: only the containers that are moved restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = AuroraHarm(cluster, journal)
    for name in names:
        journal.survives(getattr(harm, name))
    for each in (journal.kill_executor, journal.kill_launcher):
        journal.survives(each)
    journal.let_go()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [37])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: AuroraCluster, seed: int) -> None:
    """Containers and the scheduler are killed in any order."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = AuroraHarm(cluster, journal)
    of_containers = (journal.kill_executor, journal.kill_launcher, harm.restart_instance)
    journal.survives_minutes(seed, (*of_containers, harm.lose_scheduler))
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: AuroraCluster) -> None:
    """The commands of the README: check, submit, status, logs. The counts are those of the text."""
    checked = sandbox.output_of("profiles", "check", "cluster")
    assert f"Aurora at {cluster.url}" in checked
    status = OnCluster(sandbox, "cluster").count_example(examples, _LOOPS)
    assert "/scheduler/" in status


def test_a_role_and_an_environment_are_those_of_the_submission(sandbox: Sandbox, cluster: AuroraCluster) -> None:
    """`heron submit aurora/ROLE/ENV`; later commands need the profile alone."""
    run = sandbox.start("steady.py", command="submit cluster/ads/prod")
    assert run.wait() == 0, run.all_output
    assert len(active(job_of(cluster, "steady", "ads", "prod").tasks())) > 1
    assert "/ads/prod/steady" in sandbox.output_of("status", "steady", "--profile", "cluster")
    sandbox.output_of("kill", "steady", "--profile", "cluster")
    assert cluster.containers() == {}


def test_the_shipped_profile_counts_exactly(
    sandbox: Sandbox, cluster: AuroraCluster, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check aurora` asks all three servers."""
    sandbox.environ.update(HERON_AURORA=cluster.url, HERON_AURORA_CLUSTER=cluster_name(cluster))
    options = {
        "environment": "test",
        "observer_port": observer_port(cluster),
        "python": str(python_in(sandbox)),
        "key_file": str(sandbox.root / "seal.key"),
    }
    says = f"Aurora at {cluster.url}"
    shipped_profile(sandbox, "aurora", options, says, (zookeeper, s3)).count_example(examples, _LOOPS)


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: AuroraCluster) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def instances() -> int:
        return len(active(job_of(cluster, "updating").tasks()))

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "cluster").update(steps, instances)
    assert cluster.containers() == {}
