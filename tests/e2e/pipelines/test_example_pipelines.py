"""The examples of pipelines print tables that are recounted here; files beside this one run them on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from example_tables import EXAMPLE_TABLES, ExampleTable, recommended, visited

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

TRENDS, RECOMMENDATIONS, SESSIONS = EXAMPLE_TABLES


@pytest.mark.parametrize("options", [(), ("--simulate",)], ids=["heron", "simulator"])
def test_recommendations_are_those_of_a_recount(sandbox: Sandbox, tmp_path: Path, options: tuple[str, ...]) -> None:
    """The join, the sets of customers and the order of the table, in windows that begin before the data."""
    printed = printed_by(sandbox, RECOMMENDATIONS, tmp_path, *options)
    assert printed == recommended()
    assert len(printed) > 30


@pytest.mark.parametrize("options", [(), ("--simulate",)], ids=["heron", "simulator"])
def test_sessions_are_those_of_a_recount(sandbox: Sandbox, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Sessions over three files, and hours of sessions, which close later than they end."""
    printed = printed_by(sandbox, SESSIONS, tmp_path, *options)
    assert printed == visited(tmp_path / "logs")
    assert len(printed) > 90


@pytest.mark.starts_nothing
@pytest.mark.parametrize(
    ("table", "wrong", "message"),
    [
        (RECOMMENDATIONS, ("--days", "0"), "--days 0 is below 1"),
        (SESSIONS, ("--logs", "/nowhere"), "--logs /nowhere: the folder does not exist or has no Parquet files"),
    ],
    ids=["days", "logs"],
)
def test_a_wrong_argument_is_refused(
    sandbox: Sandbox, table: ExampleTable, wrong: tuple[str, ...], message: str
) -> None:
    """Before anything starts."""
    run = sandbox.run(table.path, args=wrong)
    assert run.process.returncode == 2
    assert message in run.stderr


def printed_by(sandbox: Sandbox, table: ExampleTable, folder: Path, *options: str) -> list[str]:
    """The table that a run printed."""
    run = sandbox.start(table.path, *options, args=table.arguments(folder))
    run.finished()
    return table.lines(run.stdout)
