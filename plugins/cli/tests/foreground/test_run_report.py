"""The report of a run, whose keys are a public format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import UsageError
from heron.ipc.documents.status import ComponentStatus
from heron_cli.foreground.run_report import RunReport, check_report_path, component_reports, write_report

WORDS = TopologyDefinition(
    "words",
    (
        ComponentDefinition("lines", ComponentKind.SPOUT, "words:Lines", 1),
        ComponentDefinition("count", ComponentKind.BOLT, "words:Count", 2),
    ),
)


def test_a_report_has_the_documented_keys(tmp_path: Path) -> None:
    """Every component is listed, even without counts."""
    counts = {"count": ComponentStatus("count", "bolt", 2, emitted=1, executed=2, acked=3, failed=4, rate_per_s=9.0)}
    report = RunReport("words", "words-1", "finished", 2.5, 0.8, component_reports(WORDS, counts))
    write_report(report, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == {
        "topology": "words",
        "id": "words-1",
        "state": "finished",
        "elapsed_s": 2.5,
        "first_tuple_s": 0.8,
        "components": {
            "lines": {"parallelism": 1, "emitted": 0, "executed": 0, "acked": 0, "failed": 0},
            "count": {"parallelism": 2, "emitted": 1, "executed": 2, "acked": 3, "failed": 4},
        },
    }


def test_a_report_path_is_checked_before_the_run(tmp_path: Path) -> None:
    """An error after a long run would be too late."""
    with pytest.raises(UsageError, match="is a folder; give a file"):
        check_report_path(tmp_path)
    with pytest.raises(UsageError, match="does not exist; make it first"):
        check_report_path(tmp_path / "absent" / "report.json")
    check_report_path(tmp_path / "report.json")
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        write_report(RunReport("w", "w-1", "failed", 0.0, None), tmp_path / "absent" / "report.json")
