"""The pytest plugin of heron-testing-servers: servers, a browser and a network as fixtures.

A fixture starts its server for the first test that asks for it, and ends it with the session. pytest adds the mark
``servers`` to each test that uses such a fixture. Where a server cannot be installed, pytest skips its tests and names
them at the end of the run. In continuous integration (``CI`` is set) these tests fail.

Every run of pytest in an environment with this distribution pays for this module. Hence a fixture loads the module of
its server when a test asks for it. To add a server, add a module whose `FIXTURES` has the names of its fixtures, and
the fixtures here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import pytest

from heron_testing_servers.serving import list_missing, serving

if TYPE_CHECKING:
    from heron_testing_servers.aurora import AuroraCluster
    from heron_testing_servers.carbon import CarbonServer
    from heron_testing_servers.chromium import ChromiumBrowser
    from heron_testing_servers.distributedlog import DistributedLogCluster
    from heron_testing_servers.ecs import EcsServer
    from heron_testing_servers.etcd import EtcdServer
    from heron_testing_servers.hdfs import HdfsServer
    from heron_testing_servers.kafka import KafkaServer
    from heron_testing_servers.kubernetes import KubernetesServer
    from heron_testing_servers.logrotate import Logrotate
    from heron_testing_servers.marathon import MarathonServer
    from heron_testing_servers.mesos import MesosCluster
    from heron_testing_servers.multilang import StormLibraries
    from heron_testing_servers.network import Network
    from heron_testing_servers.nginx import NginxServer
    from heron_testing_servers.nomad import NomadAgent, NomadAgents
    from heron_testing_servers.oci_registry import OciRegistry
    from heron_testing_servers.postgresql import PostgresqlServer
    from heron_testing_servers.prometheus import PrometheusServer
    from heron_testing_servers.redis import RedisServer
    from heron_testing_servers.s3 import S3Server
    from heron_testing_servers.schema_registry import SchemaRegistryServer
    from heron_testing_servers.scribe import ScribeServer
    from heron_testing_servers.scribe_clients import ScribeClients
    from heron_testing_servers.slurm import SlurmCluster
    from heron_testing_servers.spark import SparkCluster
    from heron_testing_servers.storm import StormClient
    from heron_testing_servers.yarn import YarnCluster
    from heron_testing_servers.yarn_services import YarnServices
    from heron_testing_servers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

__all__ = [
    "aurora",
    "carbon",
    "chromium",
    "distributedlog",
    "ecs",
    "etcd",
    "hdfs",
    "kafka",
    "kubernetes",
    "logrotate",
    "marathon",
    "mesos",
    "network",
    "nginx",
    "nomad",
    "nomad_agents",
    "oci_registry",
    "postgresql",
    "prometheus",
    "redis_server",
    "s3",
    "schema_registry",
    "scribe",
    "scribe_clients",
    "slurm",
    "spark",
    "storm_client",
    "storm_libraries",
    "yarn",
    "yarn_services",
    "zookeeper",
    "zookeeper_ensemble",
]

_HOSTS = 4  # of the network

pytest.register_assert_rewrite(f"{__package__}.kafka_topics")  # a failed check shows its values


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "servers: needs a server beyond Python")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, before ``-m`` is applied."""
    for item in items:
        if isinstance(item, pytest.Function) and not _FIXTURES.isdisjoint(item.fixturenames):
            item.add_marker("servers")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the missing servers, so that the run does not look complete."""
    list_missing(terminalreporter, config)


@pytest.fixture(scope="session")
def aurora(request: pytest.FixtureRequest) -> Iterator[AuroraCluster]:
    """A running Aurora with two hosts, shared by the session: use your own role, and start it after a kill."""
    yield from _served(request, "aurora", "AuroraCluster")


@pytest.fixture(scope="session")
def carbon(request: pytest.FixtureRequest) -> Iterator[CarbonServer]:
    """A running carbon, shared by the session: use a prefix for your series, and restart it after a kill."""
    yield from _served(request, "carbon", "CarbonServer")


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Iterator[ChromiumBrowser]:
    """A running Chromium, shared by the tests of a file, because its event loop keeps others from the main thread."""
    yield from serving("chromium", request.config, _class("chromium", "ChromiumBrowser"))


@pytest.fixture(scope="session")
def distributedlog(request: pytest.FixtureRequest) -> Iterator[DistributedLogCluster]:
    """A running DistributedLog of three bookies, shared by the session: use your own logs, restart what you kill."""
    yield from _served(request, "distributedlog", "DistributedLogCluster")


@pytest.fixture(scope="session")
def ecs(request: pytest.FixtureRequest) -> Iterator[EcsServer]:
    """A running ECS, shared by the session: use your own names, end your services, and start it after a kill."""
    yield from _served(request, "ecs", "EcsServer")


@pytest.fixture(scope="session")
def etcd(request: pytest.FixtureRequest) -> Iterator[EtcdServer]:
    """A running etcd, shared by the session: use a prefix, and restart it after a kill."""
    yield from _served(request, "etcd", "EtcdServer")


@pytest.fixture(scope="session")
def hdfs(request: pytest.FixtureRequest) -> Iterator[HdfsServer]:
    """A running HDFS, shared by the session: use a folder, and restart it after a kill."""
    yield from _served(request, "hdfs", "HdfsServer")


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A running Kafka, shared by the session: use your own topics, and restart it after a kill."""
    yield from _served(request, "kafka", "KafkaServer")


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Iterator[KubernetesServer]:
    """A running Kubernetes of two nodes, shared by the session: make your own namespace, restart what you kill."""
    yield from _served(request, "kubernetes", "KubernetesServer")


@pytest.fixture(scope="session")
def logrotate(request: pytest.FixtureRequest) -> Iterator[Logrotate]:
    """The program that rotates logs."""
    yield from _served(request, "logrotate", "Logrotate")


@pytest.fixture(scope="session")
def marathon(request: pytest.FixtureRequest) -> Iterator[MarathonServer]:
    """A running Marathon with two agents, shared by the session: use your own group, and start it after a kill."""
    yield from _served(request, "marathon", "MarathonServer")


@pytest.fixture(scope="session")
def mesos(request: pytest.FixtureRequest) -> Iterator[MesosCluster]:
    """A running Mesos of a master and two agents, shared by the session: tear frameworks down, restart killed ones."""
    yield from _served(request, "mesos", "MesosCluster")


@pytest.fixture(scope="session")
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Four hosts with links that can be broken, shared by the session; end every fault that you begin."""
    make = _class("network", "Network")
    yield from serving("network", request.config, lambda: make(_HOSTS))


@pytest.fixture(scope="session")
def nginx(request: pytest.FixtureRequest) -> Iterator[NginxServer]:
    """A running nginx with WebDAV, shared by the session: use your own folders, and restart it after a kill."""
    yield from _served(request, "nginx", "NginxServer")


@pytest.fixture(scope="session")
def nomad(request: pytest.FixtureRequest) -> Iterator[NomadAgent]:
    """A running Nomad of one agent, shared by the session: end your jobs, and restart it after a kill."""
    yield from _served(request, "nomad", "NomadAgent")


@pytest.fixture(scope="session")
def nomad_agents(request: pytest.FixtureRequest) -> Iterator[NomadAgents]:
    """A running Nomad of a server and two clients, shared by the session: end your jobs, and restart what you kill."""
    yield from _served(request, "nomad", "NomadAgents")


@pytest.fixture(scope="session")
def oci_registry(request: pytest.FixtureRequest) -> Iterator[OciRegistry]:
    """A running registry of OCI artifacts, shared by the session: use your own repositories, restart it if killed."""
    yield from _served(request, "oci_registry", "OciRegistry")


@pytest.fixture(scope="session")
def postgresql(request: pytest.FixtureRequest) -> Iterator[PostgresqlServer]:
    """A running PostgreSQL, shared by the session: use your own schema, and restart it after a kill."""
    yield from _served(request, "postgresql", "PostgresqlServer")


@pytest.fixture(scope="session")
def prometheus(request: pytest.FixtureRequest) -> Iterator[PrometheusServer]:
    """A running Prometheus, shared by the session, that scrapes `PrometheusServer.target_port` and its `targets`."""
    yield from _served(request, "prometheus", "PrometheusServer")


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A running Redis, shared by the session: use your own prefix, and restart it after a kill."""
    yield from _served(request, "redis", "RedisServer")


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    """A running S3 server, shared by the session: make your own bucket, and restart it after a kill."""
    yield from _served(request, "s3", "S3Server")


@pytest.fixture(scope="session")
def schema_registry(request: pytest.FixtureRequest) -> Iterator[SchemaRegistryServer]:
    """A running schema registry, shared by the session: use your own subjects, and restart it after a kill."""
    yield from _served(request, "schema_registry", "SchemaRegistryServer")


@pytest.fixture(scope="session")
def scribe(request: pytest.FixtureRequest) -> Iterator[ScribeServer]:
    """A running Flume with a Scribe source, shared by the session: use your own categories."""
    yield from _served(request, "scribe", "ScribeServer")


@pytest.fixture(scope="session")
def scribe_clients(request: pytest.FixtureRequest) -> Iterator[ScribeClients]:
    """Real clients of Scribe, as programs."""
    yield from _served(request, "scribe_clients", "ScribeClients")


@pytest.fixture(scope="session")
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmCluster]:
    """A running Slurm with three nodes, shared by the session: restart the processes that you kill, end your jobs."""
    yield from _served(request, "slurm", "SlurmCluster")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkCluster]:
    """A running standalone Spark with two workers, shared by the session: restart the processes that you kill."""
    yield from _served(request, "spark", "SparkCluster")


@pytest.fixture(scope="session")
def storm_client(request: pytest.FixtureRequest) -> Iterator[StormClient]:
    """The jars of storm-client, for components in Java, and a compiler."""
    yield from _served(request, "storm", "StormClient")


@pytest.fixture(scope="session")
def storm_libraries(request: pytest.FixtureRequest) -> Iterator[StormLibraries]:
    """Storm's libraries for other languages, with their interpreters and compilers."""
    yield from _served(request, "multilang", "StormLibraries")


@pytest.fixture(scope="session")
def yarn(request: pytest.FixtureRequest) -> Iterator[YarnCluster]:
    """A running YARN of one node, shared by the session: restart the processes that you kill."""
    yield from _served(request, "yarn", "YarnCluster")


@pytest.fixture(scope="session")
def yarn_services(
    request: pytest.FixtureRequest, hdfs: HdfsServer, zookeeper: ZooKeeperServer
) -> Iterator[YarnServices]:
    """A running YARN of two nodes with services over REST, shared by the session: end services, restart killed parts.

    Its files are in `hdfs`, its registry is in `zookeeper`.
    """
    host, port = zookeeper.address
    yield from _served(request, "yarn_services", "YarnServices", hdfs.file_system, f"{host}:{port}")


@pytest.fixture(scope="session")
def zookeeper(request: pytest.FixtureRequest) -> Iterator[ZooKeeperServer]:
    """A running ZooKeeper of one server, shared by the session: use your own root, and restart it after a kill."""
    yield from _served(request, "zookeeper", "ZooKeeperServer")


@pytest.fixture(scope="session")
def zookeeper_ensemble(request: pytest.FixtureRequest) -> Iterator[ZooKeeperEnsemble]:
    """A running ZooKeeper of three servers, shared by the session: restart the servers that you kill."""
    yield from _served(request, "zookeeper", "ZooKeeperEnsemble")


_FIXTURES = frozenset(__all__)


def _served(request: pytest.FixtureRequest, module: str, name: str, *arguments: str) -> Iterator[Any]:
    """Serve the class `name` of a module; its arguments are a new folder and the others."""
    folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    make = _class(module, name)
    yield from serving(module, request.config, lambda: make(folders.mktemp(module), *arguments))


def _class(module: str, name: str) -> Callable[..., Any]:
    # Not by `heron.driver_kit.loading`, which imports msgspec and so takes longer than all of this module.
    return cast("Callable[..., Any]", getattr(import_module(f"{__package__}.{module}"), name))
