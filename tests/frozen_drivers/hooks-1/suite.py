"""The observer ``deaths`` writes what happens."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from heron_hooks_deaths import DeathJournal
from heron_testing.observers import announce


def test_is_found_by_its_name() -> None:
    assert [each.load() for each in entry_points(group="heron.hooks", name="deaths")] == [DeathJournal]


def test_writes_a_line_for_each_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEATHS", str(tmp_path / "deaths"))
    journal = DeathJournal()
    announce(journal, "heron_container_started", topology="words", container_id=1, attempt=1)
    announce(journal, "heron_container_started", topology="words", container_id=1, attempt=2)
    announce(journal, "heron_process_died", topology="words", container_id=1, process="count-3", reason="SIGKILL")
    announce(
        journal, "heron_backpressure_started", topology="words", component="count", task_id=3, cause="the task is slow"
    )
    announce(journal, "heron_backpressure_ended", topology="words", component="count", task_id=3, duration_s=1.5)
    announce(journal, "heron_topology_ended", topology="words", topology_id="words-1", state="killed")
    assert [json.loads(line) for line in (tmp_path / "deaths").read_text().splitlines()] == [
        {"topology": "words", "container": 1, "attempt": 2},
        {"topology": "words", "container": 1, "process": "count-3", "reason": "SIGKILL"},
        {"topology": "words", "task": "count/3", "cause": "the task is slow"},
        {"topology": "words", "task": "count/3", "duration_s": 1.5},
        {"topology": "words", "state": "killed"},
    ]
