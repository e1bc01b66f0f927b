"""Servers, and a network, as pytest fixtures, one each per session; known where `heron_testing.pytest_plugin` is.

A test that uses one has the mark ``servers`` by itself. Where a server cannot be installed its tests are skipped and
the end of the run says so; in continuous integration (``CI`` is set) they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import pytest

from servers.absence import not_here
from servers.carbon import CarbonServer
from servers.etcd import EtcdServer
from servers.hdfs import HdfsServer
from servers.install import ServerNotInstalledError
from servers.network import Network
from servers.nginx import NginxServer
from servers.prometheus import PrometheusServer
from servers.s3 import S3Server
from servers.scribe import ScribeServer
from servers.spark import SparkCluster
from servers.yarn import YarnCluster
from servers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

__all__ = [
    "carbon",
    "etcd",
    "hdfs",
    "network",
    "nginx",
    "prometheus",
    "s3",
    "scribe",
    "spark",
    "yarn",
    "zookeeper",
    "zookeeper_ensemble",
]


class _Server(Protocol):
    def start(self) -> None: ...

    def kill(self) -> None: ...


S = TypeVar("S", bound=_Server)

_SERVERS = frozenset(__all__)
_missing = pytest.StashKey[dict[str, str]]()


@pytest.fixture(scope="session")
def etcd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """A running etcd, shared by the session: write below a prefix of your own, and start it again after a kill."""
    yield from _serving("etcd", request.config, lambda: EtcdServer(tmp_path_factory.mktemp("etcd")))


@pytest.fixture(scope="session")
def carbon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CarbonServer]:
    """A running carbon, shared by the session: give series a prefix of your own, and start it again after a kill."""
    yield from _serving("carbon", request.config, lambda: CarbonServer(tmp_path_factory.mktemp("carbon")))


@pytest.fixture(scope="session")
def hdfs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A running HDFS, shared by the session: write below a folder of your own, and start it again after a kill."""
    yield from _serving("hdfs", request.config, lambda: HdfsServer(tmp_path_factory.mktemp("hdfs")))


@pytest.fixture(scope="session")
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Four hosts with links that can be broken, shared by the session; end every fault that you begin."""
    yield from _serving("network", request.config, lambda: Network(4))


@pytest.fixture(scope="session")
def nginx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NginxServer]:
    """A running nginx with WebDAV, shared by the session: use folders of your own, and start it again after a kill."""
    yield from _serving("nginx", request.config, lambda: NginxServer(tmp_path_factory.mktemp("nginx")))


@pytest.fixture(scope="session")
def prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A running Prometheus, shared by the session, that scrapes `PrometheusServer.target_port` and its `targets`."""
    yield from _serving("prometheus", request.config, lambda: PrometheusServer(tmp_path_factory.mktemp("prometheus")))


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server, shared by the session: make a bucket of your own, and start it again after a kill."""
    yield from _serving("s3", request.config, lambda: S3Server(tmp_path_factory.mktemp("s3")))


@pytest.fixture(scope="session")
def scribe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScribeServer]:
    """A running Flume with a Scribe source, shared by the session: use categories of your own."""
    yield from _serving("scribe", request.config, lambda: ScribeServer(tmp_path_factory.mktemp("scribe")))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A running standalone Spark with two workers, shared by the session: start again what you kill."""
    yield from _serving("spark", request.config, lambda: SparkCluster(tmp_path_factory.mktemp("spark")))


@pytest.fixture(scope="session")
def yarn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    """A running YARN of one node, shared by the session: start again what you kill."""
    yield from _serving("yarn", request.config, lambda: YarnCluster(tmp_path_factory.mktemp("yarn")))


@pytest.fixture(scope="session")
def zookeeper(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A running ZooKeeper of one server, shared by the session: use a root of your own, and start it after a kill."""
    yield from _serving("zookeeper", request.config, lambda: ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")))


@pytest.fixture(scope="session")
def zookeeper_ensemble(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperEnsemble]:
    """A running ZooKeeper of three servers, shared by the session: start again what you kill."""
    yield from _serving("zookeeper", request.config, lambda: ZooKeeperEnsemble(tmp_path_factory.mktemp("zookeeper")))


def _serving(name: str, config: pytest.Config, make: Callable[[], S]) -> Iterator[S]:
    try:
        server = make()
    except ServerNotInstalledError as error:
        config.stash[_missing][name] = str(error)
        not_here(f"{name} cannot be installed: {error}")
    server.start()
    yield server
    server.kill()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.stash[_missing] = {}
    config.addinivalue_line("markers", "servers: needs a server beyond Python (./dev contract)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that uses a server, before ``-m`` is applied."""
    for item in items:
        if isinstance(item, pytest.Function) and not _SERVERS.isdisjoint(item.fixturenames):
            item.add_marker("servers")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which servers were missing, so that nobody takes the run for a whole one."""
    missing = config.stash[_missing]
    if missing:
        terminalreporter.section("servers that could not be installed", sep="!", red=True, bold=True)
        for name, reason in missing.items():
            terminalreporter.line(f"{name}: its tests did not run: {reason}", red=True)
