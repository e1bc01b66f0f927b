"""A word count on ZooKeeper, S3, Graphite, Scribe and Prometheus, each of which is killed and restarted in turn."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest

from heron.spi.statemgr import NodeKind
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from heron_testing.waiting import wait_until
from heron_testing_servers.carbon import CarbonServer
from heron_testing_servers.prometheus import PrometheusServer
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.scribe import ScribeServer
from heron_testing_servers.zookeeper import ZooKeeperServer
from watched_words import MetricsServers, WatchedWords

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

PASSWORD = "open sesame"  # for a server on the loopback address that ends with the tests
PROFILE = """\
extends: local
statemgr:
  driver: zookeeper
  hosts: {hosts}
  root: {root}
  username: heron
  password: ${{env:E2E_STATE_PASSWORD}}
  timeout_s: 3
uploader:
  driver: s3
  bucket: {bucket}
  endpoint_url: {url}
  region: {region}
  access_key_id: {key}
  secret_access_key: ${{env:E2E_STORE_PASSWORD}}
{sinks}"""


@pytest.fixture
def metrics(carbon: CarbonServer, scribe: ScribeServer, prometheus: PrometheusServer) -> MetricsServers:
    """The three servers of metrics."""
    return MetricsServers(f"e2e{secrets.token_hex(4)}", carbon, scribe, prometheus)


@pytest.fixture
def profile(
    sandbox: Sandbox,
    zookeeper: ZooKeeperServer,
    s3: S3Server,
    metrics: MetricsServers,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[str, str]:
    """A profile with all servers, and a bucket and a root for this test."""
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    boto3.client("s3", endpoint_url=s3.url, **keys).create_bucket(Bucket=metrics.mark)
    monkeypatch.setenv("E2E_STATE_PASSWORD", PASSWORD)
    monkeypatch.setenv("E2E_STORE_PASSWORD", s3.secret_key)
    text = PROFILE.format(
        hosts="{}:{}".format(*zookeeper.address),
        root=f"/{metrics.mark}",
        bucket=metrics.mark,
        url=s3.url,
        region=s3.region,
        key=s3.access_key,
        sinks=metrics.sections,
    )
    return sandbox.write_profile("everything", text)


@pytest.fixture
def state(zookeeper: ZooKeeperServer, metrics: MetricsServers) -> Iterator[ZookeeperStateManager]:
    """The same nodes, as another client sees them."""
    options = {"hosts": "{}:{}".format(*zookeeper.address), "root": f"/{metrics.mark}"}
    state = ZookeeperStateManager.open({**options, "username": "heron", "password": PASSWORD})
    yield state
    state.close()


def test_words_are_counted_exactly_without_any_one_server(
    sandbox: Sandbox,
    profile: tuple[str, str],
    metrics: MetricsServers,
    state: ZookeeperStateManager,
    zookeeper: ZooKeeperServer,
    s3: S3Server,
) -> None:
    """No server is on the path of tuples. `heron status` names the unreachable server."""
    run = sandbox.start("steady_words.py", *profile, args=("--aside", "1"))
    watched = WatchedWords(sandbox, run, profile, metrics)
    watched.begins()
    before = watched.processes()
    for sink in metrics.readers:
        watched.outlives(sink)
    without_state(watched, state, zookeeper)
    assert watched.processes() == before, "a process was replaced"
    without_packages(watched, s3)
    replaced = {key for key, pid in watched.processes().items() if pid != before[key]}
    assert replaced == {key for key in before if key[0] == 3}, sandbox.log_text("tmanager-0.log")
    watched.ends_exactly()
    assert [kind for kind in NodeKind if state.list(kind)] == []
    assert json.loads(sandbox.output_of("packages", "list", *profile, "--json")) == []
    output = sandbox.log_text() + run.all_output
    assert PASSWORD not in output
    assert s3.secret_key not in output


def without_state(watched: WatchedWords, state: ZookeeperStateManager, zookeeper: ZooKeeperServer) -> None:
    """Without ZooKeeper, words are counted, metrics arrive, and the status names ZooKeeper."""
    zookeeper.kill()
    try:
        watched.flows()
        output = watched.status(code=1)
        assert "ZooKeeper at {}:{} does not answer; is it running".format(*zookeeper.address) in output
        for sink in watched.servers.readers:
            watched.grows(sink)
        watched.flows()
    finally:
        zookeeper.start()
    wait_until(lambda: state.get(NodeKind.TMANAGER_LOCATION, "steady_words"), 30.0, "ZooKeeper answers")


def without_packages(watched: WatchedWords, s3: S3Server) -> None:
    """Without S3, only a starting container is affected; the status gives the reason until it has its package."""
    s3.kill()
    try:
        watched.flows()
        watched.run.the("executor", "c3").kill()
        bucket = re.escape(f"bucket '{watched.servers.mark}' at {s3.url}")
        reason = re.compile(rf"container 3 does not run, after \d+ starts: exit code 1: {bucket}")
        watched.run.until(lambda: reason.search(watched.status()), "the container that has no package")
        watched.flows()
    finally:
        s3.start()
    watched.run.until(lambda: watched.run.processes("stmgr", "c3"), "container 3 runs again")
    watched.run.until(lambda: "does not run" not in watched.status(), "the status knows")
    watched.flows()
