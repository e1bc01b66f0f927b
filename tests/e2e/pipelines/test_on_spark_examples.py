"""Examples of pipelines as batches on Spark of this machine: the tables of Heron, from the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from example_tables import EXAMPLE_TABLES, ExampleTable
from spark_run import BATCH, check_table

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.sandbox import Sandbox

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.usefixtures("java")]


@pytest.mark.parametrize("table", EXAMPLE_TABLES, ids=lambda table: table.file)
def test_an_example_prints_the_table_of_heron(sandbox: Sandbox, tmp_path: Path, table: ExampleTable) -> None:
    """stdout has the lines of the program alone."""
    check_table(sandbox, tmp_path, table, BATCH)
