"""A home folder with two profiles: this machine, and a Spark cluster on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.records import BenchError
from heron_testing_servers.install import ServerNotInstalledError
from heron_testing_servers.server_process import ServerError
from heron_testing_servers.spark import SparkCluster

__all__ = ["CLUSTER", "HERE", "SparkHome", "spark_home"]

HERE = "here"
CLUSTER = "cluster"
"""The profiles: the machine without Spark, and the machine as a cluster."""

_PROFILES = {
    HERE: "extends: local\n",
    # HOME identifies the processes that Spark starts for the topology, so their use is counted.
    CLUSTER: 'extends: spark\nscheduler: {{master: "{url}", conf: {{spark.executorEnv.HOME: "{home}"}}}}\n',
}


@dataclass(frozen=True, slots=True)
class SparkHome:
    """The folder that topologies are submitted from, and the cluster that runs them."""

    folder: Path
    cluster: SparkCluster


@contextmanager
def spark_home() -> Iterator[SparkHome]:
    """Start a standalone master and two workers, and stop them at the end.

    Raises:
        BenchError: when Spark is not installed or does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="hb-"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each Python worker would compile all its imports
    try:
        (folder / "servers").mkdir()
        cluster = SparkCluster(folder / "servers")
        cluster.start()
    except (ServerNotInstalledError, ServerError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        msg = f"Spark is not available: {error}"
        raise BenchError(msg) from error
    try:
        profiles = folder / ".heron" / "profiles"
        profiles.mkdir(parents=True)
        for name, text in _PROFILES.items():
            (profiles / f"{name}.yaml").write_text(text.format(url=cluster.url, home=folder), encoding="utf-8")
        yield SparkHome(folder, cluster)
    finally:
        cluster.kill()
        shutil.rmtree(folder, ignore_errors=True)
