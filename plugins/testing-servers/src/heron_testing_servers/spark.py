"""A standalone Spark cluster, a master and workers, on the loopback address."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "SparkCluster", "SparkWorker"]

FIXTURES = ("spark",)

_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_SETTINGS = (
    "-Dspark.decommission.enabled=true",
    "-Dspark.master.rest.enabled=false",
    "-Dspark.worker.timeout=8",  # a killed worker counts as lost after this many seconds, not 60
)
_HOST = "127.0.0.1"
_PROBE_S = 2.0


class SparkCluster:
    """The Spark that is installed beside the tests, or the one in `home`; its executors run in `folder`."""

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        cores: int = 32,
        memory_mb: int = 32 * 1024,
        home: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Each worker claims these cores and this memory, whatever the machine has; all have the `settings`.

        Raises:
            ServerNotInstalledError: when there is no pyspark in this environment, or no Java.
        """
        found = importlib.util.find_spec("pyspark")
        if found is None or found.origin is None:
            msg = "pyspark is not installed here; `pip install heron-scheduler-spark` brings it"
            raise ServerNotInstalledError(msg)
        if shutil.which("java") is None:
            msg = "there is no `java` on the PATH; install a JRE of 17 or newer"
            raise ServerNotInstalledError(msg)
        self._home = home or Path(found.origin).parent
        self._folder = folder
        self._settings = [f"-D{name}={value}" for name, value in (settings or {}).items()]
        port, self.page_port = free_port(), free_port()
        self.url = f"spark://{_HOST}:{port}"
        """The master URL for applications; its page is at `page_port` of the same host."""
        arguments = ["--host", _HOST, "--port", str(port), "--webui-port", str(self.page_port)]
        self.master = ServerProcess(self._command("master.Master", *arguments), folder / "master.log", self._serves)
        """Gives executors to applications."""
        self.workers = [SparkWorker(self, number, cores, memory_mb) for number in range(workers)]
        """Run the executors."""

    def start(self) -> None:
        """Start the processes that do not run or were decommissioned, and return when the master has all workers.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        self.master.start()
        for worker in self.workers:
            if worker.process.pid and not self.reports_alive(worker.port):
                worker.process.kill()
            worker.process.start()

    def kill(self) -> None:
        """End all with SIGKILL, including the executors of applications; idempotent."""
        for worker in self.workers:
            worker.process.kill()
        self.master.kill()

    def state(self) -> dict[str, object]:
        """Return the state from the master: ``workers``, ``activeapps``, ``completedapps``.

        Raises:
            ServerError: when it does not answer.
        """
        try:
            with urllib.request.urlopen(f"{self._page}/json/", timeout=_PROBE_S) as answer:  # noqa: S310  # the server of the test
                found: dict[str, object] = json.load(answer)
                return found
        except (urllib.error.URLError, OSError, ValueError) as error:
            msg = f"the master does not answer at {self._page}: {error}"
            raise ServerError(msg) from error

    def applications(self) -> list[str]:
        """Return the ids of the running applications."""
        active = self.state()["activeapps"]
        assert isinstance(active, list)
        return [str(each["id"]) for each in active]

    def reports_alive(self, port: int) -> bool:
        """Return whether the master counts the worker at a port as alive."""
        try:
            workers = self.state()["workers"]
        except ServerError:
            return False
        assert isinstance(workers, list)
        return any(each["port"] == port and each["state"] == "ALIVE" for each in workers)

    def worker_command(self, port: int, cores: int, memory_mb: int, work: Path) -> list[str]:
        """Return the start command of a worker of this cluster."""
        place = ["--host", _HOST, "--port", str(port), "--webui-port", str(free_port()), "--work-dir", str(work)]
        size = ["--cores", str(cores), "--memory", f"{memory_mb}m"]
        return self._command("worker.Worker", *place, *size, self.url)

    @property
    def folder(self) -> Path:
        """The folder of its logs and of its workers' work folders."""
        return self._folder

    @property
    def _page(self) -> str:
        return f"http://{_HOST}:{self.page_port}"

    def _serves(self) -> bool:
        try:
            return bool(self.state())
        except ServerError:
            return False

    def _command(self, what: str, *arguments: str) -> list[str]:
        variables = {
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_PUBLIC_DNS": _HOST,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join([_JVM, *_SETTINGS, *self._settings]),
            "SPARK_LAUNCHER_OPTS": _JVM,
        }
        environment = [f"{name}={value}" for name, value in variables.items()]
        script = str(self._home / "bin" / "spark-class")
        return ["env", *environment, script, f"org.apache.spark.deploy.{what}", *arguments]


class SparkWorker:
    """One worker of a cluster; kill its `process` and start it again."""

    def __init__(self, cluster: SparkCluster, number: int, cores: int, memory_mb: int) -> None:
        """The worker with this number."""
        self.port = port = free_port()
        """The port at which the master reaches it."""
        self.work = cluster.folder / f"work-{number}"
        """The folder in which the executors of applications write: ``APPLICATION/EXECUTOR/stderr``."""
        command = cluster.worker_command(port, cores, memory_mb, self.work)
        self.process = ServerProcess(
            command, cluster.folder / f"worker-{number}.log", lambda: cluster.reports_alive(port)
        )
        """Its JVM."""

    def decommission(self) -> None:
        """Decommission it: it accepts no new executors, and its executors end after their tasks."""
        os.kill(self.process.pid, signal.SIGPWR)
