"""Examples of pipelines as queries on Spark, and all on a cluster: the tables of Heron, from the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from example_tables import EXAMPLE_TABLES, ExampleTable
from spark_run import RUN_S, STREAMING, check_table

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.sandbox import Sandbox
    from heron_testing_servers.spark import SparkCluster

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.usefixtures("java")]


@pytest.mark.parametrize("table", EXAMPLE_TABLES, ids=lambda table: table.file)
def test_an_example_prints_the_table_of_heron(sandbox: Sandbox, tmp_path: Path, table: ExampleTable) -> None:
    """As on Spark in one batch."""
    check_table(sandbox, tmp_path, table, STREAMING)


def test_workers_of_a_cluster_get_the_code_of_the_author(sandbox: Sandbox, examples: Path, spark: SparkCluster) -> None:
    """They have Python and the distribution, and nothing of the program."""
    spark.start()
    checkpoint = sandbox.root / "checkpoint"
    few = "{spark.cores.max: 2}"  # the cluster says that it has many, and starts an executor for each worker
    own = {"master": spark.url, "driver_host": "127.0.0.1", "conf": few}
    settings = tuple(word for name, value in own.items() for word in ("--set", f"engine.{name}={value}"))
    for profile in ("spark-batch", "spark-streaming"):
        kept = ("--set", f"engine.checkpoint={checkpoint}") if profile == "spark-streaming" else ()
        run = sandbox.start(
            examples / "pipelines" / "trends.py", "--profile", profile, *settings, *kept, args=("--seconds", "20")
        )
        run.finished(RUN_S)
        assert sum("#topic" in line for line in run.stdout.splitlines()) == 6
