"""Topologies on the test server of Marathon with two agents, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.marathon import MarathonServer
from on_cluster import BACK_S, ClusterJournal, OnCluster

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PROFILE = """\
extends: local
scheduler:
  driver: marathon
  addresses: ["{url}"]
  token: {token}
  group: /e2e
  key_file: {key}
  python: {python}
  stable_s: 0
  stop_grace_s: 3
  start_s: 60
  env: {{HOME: "{home}", TMPDIR: "{tmp}"}}  # all that runs in the cluster belongs to the sandbox, which looks for it
engine: {{heron.executor.stable.s: 0}}
"""
_LOOPS = 30


@pytest.fixture
def cluster(sandbox: Sandbox, marathon: MarathonServer) -> Iterator[MarathonServer]:
    """Marathon with both agents, and the profile ``cluster`` that names it."""
    marathon.start()
    key = sandbox.root / "seal.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    own = {"home": sandbox.home, "tmp": sandbox.tmp, "key": key, "python": sys.executable}
    sandbox.write_profile("cluster", _PROFILE.format(url=marathon.url, token=marathon.token, **own))
    yield marathon
    marathon.start()
    for host in marathon.hosts:
        marathon.return_agent(host)
    if any(each["id"] == "/e2e" for each in ask(marathon, "GET", "groups")["groups"]):
        ask(marathon, "DELETE", "groups/e2e?force=true")


def ask(marathon: MarathonServer, method: str, path: str) -> Any:  # noqa: ANN401 - of any shape
    """Do what a person does in Marathon's pages."""
    headers = {"Authorization": f"token={marathon.token}"}
    answer = httpx.request(method, f"{marathon.url}/v2/{path}", headers=headers, timeout=30.0)
    return answer.raise_for_status().json() if answer.content else None


class MarathonHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, cluster: MarathonServer, journal: ClusterJournal) -> None:
        self.cluster, self.journal = cluster, journal

    def kill_task(self) -> set[int]:
        """A person kills a task in Marathon's pages: its app starts another one."""
        ask(self.cluster, "DELETE", "apps/e2e/journal/container-1/tasks")
        return {1}

    def lose_agent(self) -> set[int]:
        """Cut an agent: for Mesos its machine is lost, while the old copies of its containers still run."""
        host = self._hosts()[1]
        moved = {container for container, name in self._hosts().items() if name == host}
        self.cluster.lose_agent(host)
        wait_until(lambda: host not in self._hosts().values(), BACK_S, f"{host} is lost")
        return moved

    def lose_marathon(self) -> set[int]:
        """Kill Marathon for half a minute: no container notices."""
        self.cluster.process.kill()
        self.journal.flows_on("the end of Marathon")
        self.cluster.start()
        return set()

    def _hosts(self) -> dict[int, str]:
        """Return the agents of the containers that run."""
        found = ask(self.cluster, "GET", "tasks")["tasks"]
        mine = [each for each in found if each["appId"].startswith("/e2e/journal/") and each["state"] == "TASK_RUNNING"]
        return {int(each["appId"].rpartition("-")[2]): each["host"] for each in mine}


@pytest.mark.parametrize("names", [("kill_task", "lose_agent"), ("lose_marathon",)], ids="-".join)
def test_no_line_is_lost_whatever_marathon_does(
    sandbox: Sandbox, cluster: MarathonServer, names: tuple[str, ...]
) -> None:
    """At least once: only the containers that are moved restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = MarathonHarm(cluster, journal)
    for name in names:
        journal.survives(getattr(harm, name))
    for each in (journal.kill_executor, journal.kill_launcher):
        journal.survives(each)
    journal.let_go()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [37])
def test_no_line_is_lost_in_minutes_of_faults(sandbox: Sandbox, cluster: MarathonServer, seed: int) -> None:
    """Containers and Marathon are killed in any order."""
    journal = ClusterJournal(OnCluster(sandbox, "cluster"))
    harm = MarathonHarm(cluster, journal)
    journal.survives_minutes(seed, (journal.kill_executor, journal.kill_launcher, harm.kill_task, harm.lose_marathon))
    journal.let_go()


def test_the_example_counts_exactly(sandbox: Sandbox, examples: Path, cluster: MarathonServer) -> None:
    """The commands of the README: check, submit, status, logs. The counts are those of the text."""
    checked = sandbox.output_of("profiles", "check", "cluster")
    assert f"at {cluster.url}, group /e2e" in checked
    status = OnCluster(sandbox, "cluster").count_example(examples, _LOOPS)
    assert "/ui/#/group/%2Fe2e%2Fword-count-" in status


def test_containers_come_and_go_without_loss(sandbox: Sandbox, cluster: MarathonServer) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def apps() -> int:
        return len(ask(cluster, "GET", "groups/e2e/updating?embed=group.apps")["apps"])

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    OnCluster(sandbox, "cluster").update(steps, apps)
    assert ask(cluster, "GET", "groups/e2e")["groups"] == []
    assert cluster.containers() == {}
