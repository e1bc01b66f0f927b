"""A Delta table in levels: its rows reach another one once, in micro-batches and when attempts and drivers fail."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from heron_connector_delta import DeltaSink, DeltaSource
from heron_streamlet import Builder
from heron_testing.pipelines.level_runs import LevelRun, plan_of


@pytest.mark.parametrize("cut", [None, 1, 7])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.matrix) for seed in (1, 2))])
def test_rows_are_copied_once(tmp_path: Path, cut: int | None, seed: int) -> None:
    """Numbers of micro-batches are those of the transactions, and the driver commits what workers have prepared."""
    for part in range(3):
        write_deltalake(tmp_path / "from", pa.table({"n": range(part * 40, part * 40 + 40), "part": [part] * 40}),
                        mode="append", partition_by=["part"])  # fmt: skip
    builder = Builder()
    rows = builder.new_columns(DeltaSource(tmp_path / "from", rows=6))
    schema = pa.schema([("n", pa.int64()), ("part", pa.int64())])
    folder = tmp_path / "staged"
    rows.repartition(2).to_sink(DeltaSink(tmp_path / "columns", id="columns", folder=folder, schema=schema))
    rows.rows().repartition(3).to_sink(DeltaSink(tmp_path / "rows", id="rows", folder=folder, schema=schema))
    plan = plan_of(builder.graph(), 2, uuid.uuid4().hex, cut)
    run = LevelRun(plan, tmp_path / "checkpoint", random.Random(seed) if cut is not None else None)
    run.run()
    assert run.failures == []
    for name in ("columns", "rows"):
        found = DeltaTable(tmp_path / name).to_pyarrow_table().to_pylist()
        assert sorted((row["n"], row["part"]) for row in found) == [(n, n // 40) for n in range(120)]
