"""A home folder whose profiles name this machine and a Spark cluster, which runs beside it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.records import BenchError
from servers.install import ServerNotInstalledError
from servers.server_process import ServerError
from servers.spark import SparkCluster

__all__ = ["CLUSTER", "HERE", "SparkHome", "spark_home"]

HERE = "here"
CLUSTER = "cluster"
"""The profiles: one machine without Spark, and the same machine as a cluster."""

_PROFILES = {
    HERE: "extends: local\n",
    # All that Spark starts for it is known by its home, and so counts as used by it.
    CLUSTER: 'extends: spark\nscheduler: {{master: "{url}", conf: {{spark.executorEnv.HOME: "{home}"}}}}\n',
}


@dataclass(frozen=True, slots=True)
class SparkHome:
    """Where topologies are submitted from, and what they are submitted to."""

    folder: Path
    cluster: SparkCluster


@contextmanager
def spark_home() -> Iterator[SparkHome]:
    """A standalone master and two workers, gone at the end.

    Raises:
        BenchError: when there is no Spark, or it does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="hb-"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each Python worker would compile all that it imports
    try:
        (folder / "servers").mkdir()
        cluster = SparkCluster(folder / "servers")
        cluster.start()
    except (ServerNotInstalledError, ServerError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        msg = f"there is no Spark to measure: {error}"
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
