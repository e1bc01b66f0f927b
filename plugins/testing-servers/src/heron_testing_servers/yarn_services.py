"""A YARN with services over REST, one resource manager and two node managers, on the loopback address."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.hadoop import CLOSES_SOON, hadoop_java, write_hadoop_settings
from heron_testing_servers.install import installed, maven_jars
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "LABEL", "NODES", "YarnServices"]

FIXTURES = ("yarn_services",)

NODES = ("node-1", "node-2")
"""The node managers."""

LABEL = "fast"
"""The label of nodes that queues know; `YarnServices.label` gives it to one."""

_VERSION = "3.4.2"  # the newest whose services are on Maven
_NAMES = (
    "hadoop-hdfs",
    "hadoop-hdfs-client",
    "hadoop-common",
    "hadoop-yarn-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",  # the resource manager does not start without it
    "hadoop-yarn-services-core",
    "hadoop-yarn-services-api",
)
_ARTIFACTS = [f"org.apache.hadoop:{name}:{_VERSION}" for name in _NAMES]
_SERVERS = "org.apache.hadoop.yarn.server"
_HOST = "127.0.0.1"
_PROBE_S = 2.0
_READY_S = 180.0  # a manager that recovers applications, on a machine that runs other tests
_OPENED = "--add-opens=java.base/java.lang=ALL-UNNAMED"  # the pages of YARN need it on Java 17
_OF_MANAGER = ("", "scheduler.", "resource-tracker.", "admin.")
_MEMORY_MB, _CORES = 16 * 1024, 32


class YarnServices:
    """A killed node manager leaves its containers running, as on any cluster, so end services before."""

    def __init__(self, folder: Path, file_system: str, zookeeper: str) -> None:
        """Install Hadoop's libraries from Maven into the cache; needs a ``java`` of 11 or newer on the PATH.

        Args:
            folder: of these servers alone.
            file_system: the address of an HDFS, which has the specs of services, and the files of their containers.
            zookeeper: the address of a ZooKeeper, which has the registry of services.

        Raises:
            ServerNotInstalledError: when one of them is not available.
        """
        install = maven_jars(*_ARTIFACTS, without=["org.apache.hbase"])
        libraries = installed(f"yarn-services-{_VERSION}", install) / "lib"
        page_port = free_port()
        self.url = f"http://{_HOST}:{page_port}"
        """The web address of the resource manager."""
        site = _site(folder, libraries, page_port, zookeeper)
        core = {"fs.defaultFS": file_system, "hadoop.tmp.dir": str(folder / "data"), **CLOSES_SOON}
        home = Path(str(shutil.which("java"))).resolve().parents[1]

        def server(name: str, main: str, settings: dict[str, str]) -> ServerProcess:
            place = folder / name
            java = hadoop_java(place, libraries)
            write_hadoop_settings(place / "conf", core, yarn_site={**site, **settings}, capacity_scheduler=_QUEUES)
            environment = ["env", f"JAVA_HOME={home}", f"HADOOP_CONF_DIR={place}/conf"]
            ready = self._answers if name == _MANAGER else lambda: name in self.ready_nodes()
            command = [*environment, java[0], _OPENED, *java[1:], main]
            return ServerProcess(command, folder / f"{name}.log", ready, _READY_S)

        self.ports = {each: free_port() for each in NODES}
        """The port of each node manager, which its containers have as ``NM_PORT``."""
        self.resource_manager = server(_MANAGER, f"{_SERVERS}.resourcemanager.ResourceManager", {})
        """Gives containers to services; keeps its state over a kill."""
        main = f"{_SERVERS}.nodemanager.NodeManager"
        self.nodes = {
            each: server(each, main, _node(folder / each, port, free_port())) for each, port in self.ports.items()
        }
        """The node managers, by name. Each runs containers."""
        self.folders = {each: folder / each for each in NODES}
        """The folder of each node manager, with its ``logs``, and the files of its containers in ``local``."""
        self.conf = folder / _MANAGER / "conf"
        """The ``HADOOP_CONF_DIR`` of clients."""

    def start(self) -> None:
        """Start the processes that do not run, and return when all nodes are registered and services are answered.

        Raises:
            ServerError: when one of them does not start, or no node comes back, within three minutes.
        """
        for each in (self.resource_manager, *self.nodes.values()):
            each.start()
        try:
            wait_until(lambda: len(self.ready_nodes()) == len(NODES), _READY_S, "all nodes are registered")
        except AssertionError as error:  # of a manager that was away, nodes that run register again
            msg = f"of the nodes {', '.join(NODES)} only {self.ready_nodes()} are registered"
            raise ServerError(msg) from error
        wait_until(self._serves, _READY_S, "the services are answered")

    def kill(self) -> None:
        """End all with SIGKILL. Idempotent."""
        for each in (*self.nodes.values(), self.resource_manager):
            each.kill()

    def ready_nodes(self) -> list[str]:
        """Return the names of the nodes that take containers; none while the resource manager does not answer."""
        try:
            found = (self.ask("GET", "/ws/v1/cluster/nodes?states=RUNNING")["nodes"] or {}).get("node", [])
        except ServerError:
            return []
        ports = {str(each["id"]).rpartition(":")[2] for each in found}
        return [name for name, port in self.ports.items() if str(port) in ports]

    def applications(self) -> list[str]:
        """Return the ids of the applications that have not ended.

        Raises:
            ServerError: when the resource manager does not answer.
        """
        states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
        found = self.ask("GET", f"/ws/v1/cluster/apps?states={states}")["apps"] or {}
        return [str(each["id"]) for each in found.get("app", ())]

    def end_applications(self) -> None:
        """Kill every application, as an administrator does."""
        for each in self.applications():
            self.ask("PUT", f"/ws/v1/cluster/apps/{each}/state?user.name=root", {"state": "KILLED"})

    def label(self, node: str, label: str) -> None:
        """Give a node a label, and no other one, as an administrator does; an empty label is none."""
        labels = [{"name": label, "exclusivity": "false"}]
        if label:
            self.ask("POST", "/ws/v1/cluster/add-node-labels?user.name=root", {"nodeLabelInfo": labels})
        nodes = self.ask("GET", "/ws/v1/cluster/nodes?states=RUNNING")["nodes"].get("node", [])
        (mine,) = (each["id"] for each in nodes if str(each["id"]).endswith(f":{self.ports[node]}"))
        of_node = {"nodeId": mine, "labels": [label] if label else []}
        self.ask("POST", "/ws/v1/cluster/replace-node-to-labels?user.name=root", {"nodeToLabels": [of_node]})

    def ask(self, method: str, path: str, body: object = None) -> dict[str, dict[str, list[dict[str, object]]]]:
        """Return the answer of the resource manager.

        Raises:
            ServerError: when it does not answer, or refuses.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310  # the server of the test
            f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_PROBE_S) as answer:  # noqa: S310
                said = answer.read()
                found: dict[str, dict[str, list[dict[str, object]]]] = json.loads(said) if said else {}
                return found
        except (urllib.error.URLError, OSError, ValueError) as error:
            msg = f"the resource manager does not answer {method} {self.url}{path}: {error}"
            raise ServerError(msg) from error

    def _answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/ws/v1/cluster/info"))
        except ServerError:
            return False

    def _serves(self) -> bool:
        """Return whether what commands ask has had an answer: for the first one, a new manager loads classes."""
        try:
            self.applications()
            urllib.request.urlopen(f"{self.url}/app/v1/services/none?user.name=root", timeout=_PROBE_S)  # noqa: S310
        except urllib.error.HTTPError:  # there is no such service
            return True
        except (ServerError, OSError):
            return False
        return True


_MANAGER = "resourcemanager"
_QUEUE = "yarn.scheduler.capacity"
_QUEUES = {
    f"{_QUEUE}.root.queues": "default,closed",
    **{f"{_QUEUE}.root.acl_{each}": " " for each in ("submit_applications", "administer_queue")},
    # The partition of the label `LABEL` belongs to the queue `default`.
    f"{_QUEUE}.root.accessible-node-labels": "*",
    f"{_QUEUE}.root.accessible-node-labels.{LABEL}.capacity": "100",
    f"{_QUEUE}.root.default.accessible-node-labels": "*",
    f"{_QUEUE}.root.default.accessible-node-labels.{LABEL}.capacity": "100",
    f"{_QUEUE}.root.default.capacity": "100",
    f"{_QUEUE}.root.default.acl_submit_applications": "*",
    f"{_QUEUE}.root.closed.capacity": "0",
    f"{_QUEUE}.root.closed.acl_submit_applications": "somebody",
    f"{_QUEUE}.maximum-am-resource-percent": "1.0",
    f"{_QUEUE}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}


def _site(folder: Path, libraries: Path, page_port: int, zookeeper: str) -> dict[str, str]:
    manager, service = "yarn.resourcemanager", "yarn.service"
    return {
        **{f"{manager}.{each}address": f"{_HOST}:{free_port()}" for each in _OF_MANAGER},
        f"{manager}.webapp.address": f"{_HOST}:{page_port}",
        f"{manager}.hostname": _HOST,
        f"{manager}.bind-host": _HOST,
        f"{manager}.recovery.enabled": "true",
        f"{manager}.fs.state-store.uri": f"file://{folder}/store",
        f"{manager}.connect.retry-interval.ms": "300",
        f"{manager}.am.max-attempts": "20",  # tests kill masters
        f"{manager}.nodemanagers.heartbeat-interval-ms": "100",  # 1000 by default: each start and end waits for some
        # 10000 by default: so long a manager that is back gives nothing, and waits for its nodes
        f"{manager}.work-preserving-recovery.scheduling-wait-ms": "1000",
        "yarn.acl.enable": "true",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "6000",
        "yarn.resourcemanager.placement-constraints.handler": "scheduler",
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": f"file://{folder}/labels",
        "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/attributes",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(_MEMORY_MB),
        "yarn.scheduler.maximum-allocation-vcores": str(_CORES),
        "yarn.webapp.api-service.enable": "true",
        "hadoop.registry.rm.enabled": "true",
        "hadoop.registry.zk.quorum": zookeeper,
        f"{service}.classpath": f"{folder}/{_MANAGER}/conf,{libraries}/*",
        f"{service}.am.java.opts": f"-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 {_OPENED}",
        f"{service}.am-resource.memory": "384",
    }


def _node(folder: Path, port: int, page_port: int) -> dict[str, str]:
    node = "yarn.nodemanager"
    ports = {"": port, "webapp.": page_port, "localizer.": free_port(), "collector-service.": free_port()}
    return {
        **{f"{node}.{name}address": f"{_HOST}:{each}" for name, each in ports.items()},
        f"{node}.hostname": _HOST,
        f"{node}.bind-host": _HOST,
        f"{node}.resource.memory-mb": str(_MEMORY_MB),
        f"{node}.resource.cpu-vcores": str(_CORES),
        f"{node}.container-monitor.interval-ms": "300",  # 3000 by default: so late a container has its address
        f"{node}.vmem-check-enabled": "false",
        f"{node}.pmem-check-enabled": "false",
        f"{node}.disk-health-checker.enable": "false",
        f"{node}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",  # checked at once
        f"{node}.sleep-delay-before-sigkill.ms": "8000",  # 250 by default: no time for an orderly end
        f"{node}.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH",
        f"{node}.local-dirs": str(folder / "local"),
        f"{node}.log-dirs": str(folder / "logs"),
    }
