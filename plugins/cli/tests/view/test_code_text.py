"""New code of a running topology, as people read it."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as replaced

from heron.ipc.documents.status import CodeStatus
from heron_cli.launch.code.code_update import CodeUpdate
from heron_cli.view.code_text import code_as_json, code_lines, phase_lines

DONE = CodeUpdate("wc", ("count",), (2, 3), (3,), ("word: limit: 1 -> 2",), "store:new", 1.25)
STATUS = CodeStatus("store:new", "change", ("count",), (4, 5))


def test_what_changes_and_what_has_changed() -> None:
    assert list(code_lines(DONE)) == ["word: limit: 1 -> 2", "wc: count: 2 tasks run the new code after 1.2 s"]
    assert list(code_lines(replace(DONE, took_s=None, notes=()))) == [
        "wc: other code in count: 2 tasks would change, 1 of them first"
    ]
    assert list(code_lines(replace(DONE, tasks=(2,), notes=()))) == ["wc: count: 1 task runs the new code after 1.2 s"]
    assert list(code_lines(CodeUpdate("wc", (), ()))) == ["wc: no component has other code"]
    assert code_as_json(DONE)["changed"] == ("count",)


def test_a_phase_names_its_tasks_or_its_reason() -> None:
    """The end is in the result, or in the error."""
    assert list(phase_lines(STATUS, ())) == ["change: tasks 4, 5"]
    assert list(phase_lines(replaced(STATUS, phase="return", reason="slower"), ())) == ["return: slower"]
    assert list(phase_lines(replaced(STATUS, phase="canary"), ["count: new 3 tuples"])) == ["  count: new 3 tuples"]
    assert list(phase_lines(replaced(STATUS, phase="complete"), ())) == []
