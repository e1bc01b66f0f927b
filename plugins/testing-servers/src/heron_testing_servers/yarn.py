"""A YARN of one resource manager and one node manager, on the loopback address."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.hadoop import HADOOP_VERSION, hadoop_java, write_hadoop_settings
from heron_testing_servers.install import installed, maven_jars
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "YarnCluster"]

FIXTURES = ("yarn",)

_NAMES = (
    "hadoop-hdfs-client",
    "hadoop-common",
    "hadoop-yarn-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",  # the resource manager does not start without it
)
_ARTIFACTS = [f"org.apache.hadoop:{name}:{HADOOP_VERSION}" for name in _NAMES]
_SERVERS = "org.apache.hadoop.yarn.server"
_HOST = "127.0.0.1"
_OVER = {"FINISHED", "FAILED", "KILLED"}
_OF_NODE = ("localizer.", "collector-service.", "webapp.")
_PROBE_S = 2.0


class YarnCluster:
    """Its containers run in `folder`, as children of the node manager; their HOME is `home`.

    A killed node manager leaves its containers running, as on any cluster.
    """

    def __init__(self, folder: Path, cores: int = 32, memory_mb: int = 32 * 1024) -> None:
        """The node claims these cores and this memory, whatever the machine has.

        Raises:
            ServerNotInstalledError: when Hadoop's libraries, or a ``java``, are not available.
        """
        libraries = installed(f"yarn-{HADOOP_VERSION}", maven_jars(*_ARTIFACTS, without=["org.apache.hbase"])) / "lib"
        java = hadoop_java(folder, libraries)
        self.conf = folder / "conf"
        """The ``HADOOP_CONF_DIR`` of clients."""
        self.home = folder / "containers" / "home"
        """The HOME of every container."""
        self._page_port = free_port()
        _configure(folder, self.home, self._page_port, (cores, memory_mb))
        # Containers use the Java of their node manager.
        environment = ["env", f"JAVA_HOME={Path(str(shutil.which('java'))).resolve().parents[1]}", *java]
        manager = f"{_SERVERS}.resourcemanager.ResourceManager"
        node = f"{_SERVERS}.nodemanager.NodeManager"
        self.resource_manager = ServerProcess([*environment, manager], folder / "resourcemanager.log", self._answers)
        """Gives containers to applications; keeps its state over a kill."""
        self.node_manager = ServerProcess([*environment, node], folder / "nodemanager.log", self._serves)
        """Runs containers."""

    def start(self) -> None:
        """Start the processes that do not run, and return when the node is registered.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        self.resource_manager.start()
        self.node_manager.start()

    def kill(self) -> None:
        """End both with SIGKILL; processes in containers go on, so end applications before. Idempotent."""
        self.node_manager.kill()
        self.resource_manager.kill()

    def applications(self) -> list[str]:
        """Return the ids of the applications that have not ended.

        Raises:
            ServerError: when the resource manager does not answer.
        """
        found = self._ask("apps")["apps"] or {}
        return [str(each["id"]) for each in found.get("app", ()) if each["state"] not in _OVER]

    def attempts(self, application: str) -> int:
        """Return how often the application master of an application was started.

        Raises:
            ServerError: when the resource manager does not answer.
        """
        return len(self._ask(f"apps/{application}/appattempts")["appAttempts"]["appAttempt"])

    def _answers(self) -> bool:
        try:
            return bool(self._ask("info"))
        except ServerError:
            return False

    def _serves(self) -> bool:
        try:
            return bool(self._ask("metrics")["clusterMetrics"]["activeNodes"])
        except ServerError:
            return False

    def _ask(self, what: str) -> dict[str, dict[str, list[dict[str, object]]]]:
        url = f"http://{_HOST}:{self._page_port}/ws/v1/cluster/{what}"
        try:
            with urllib.request.urlopen(url, timeout=_PROBE_S) as answer:
                found: dict[str, dict[str, list[dict[str, object]]]] = json.load(answer)
                return found
        except (urllib.error.URLError, OSError, ValueError) as error:
            msg = f"the resource manager does not answer at {url}: {error}"
            raise ServerError(msg) from error


def _configure(folder: Path, home: Path, page_port: int, size: tuple[int, int]) -> None:
    data, (cores, memory_mb) = folder / "data", size
    manager, node = "yarn.resourcemanager", "yarn.nodemanager"
    places = {manager: ("", "scheduler.", "resource-tracker.", "admin."), node: ("", *_OF_NODE)}
    site = {
        **{f"{who}.{what}address": f"{_HOST}:{free_port()}" for who, all_ in places.items() for what in all_},
        f"{manager}.webapp.address": f"{_HOST}:{page_port}",
        f"{manager}.hostname": _HOST,
        f"{node}.hostname": _HOST,
        f"{manager}.bind-host": _HOST,
        f"{node}.bind-host": _HOST,
        f"{manager}.recovery.enabled": "true",
        f"{manager}.fs.state-store.uri": f"file://{data}/store",
        f"{manager}.connect.retry-interval.ms": "300",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "6000",
        "yarn.node-attribute.fs-store.root-dir": f"file://{data}/attributes",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(memory_mb),
        "yarn.scheduler.maximum-allocation-vcores": str(cores),
        f"{node}.resource.memory-mb": str(memory_mb),
        f"{node}.resource.cpu-vcores": str(cores),
        f"{node}.vmem-check-enabled": "false",
        f"{node}.pmem-check-enabled": "false",
        f"{node}.disk-health-checker.enable": "false",
        f"{node}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",  # checked at once
        f"{node}.local-dirs": str(data / "local"),
        f"{node}.log-dirs": str(folder / "logs"),
        f"{node}.user-home-dir": str(home),
    }
    queue = "yarn.scheduler.capacity"
    queues = {
        f"{queue}.root.queues": "default",
        f"{queue}.root.default.capacity": "100",
        f"{queue}.maximum-am-resource-percent": "1.0",
        f"{queue}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    }
    core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(data)}
    write_hadoop_settings(folder / "conf", core, yarn_site=site, capacity_scheduler=queues)
