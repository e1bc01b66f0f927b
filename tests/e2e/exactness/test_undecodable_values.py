"""Values that a receiver cannot decode: each fails alone, between processes, in every delivery mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

VALUES, BAD = 3000, 1234
GOOD = [VALUES - 1, sum(range(VALUES)) - BAD]

REASONS = {
    "arguments": ("undecodable.TwoArgumentsError", "TypeError: TwoArgumentsError.__init__() missing 1 required"),
    "lacking": ("lacking.Thing", "ModuleNotFoundError: No module named 'lacking'"),
    "inside": ("undecodable.Stubborn", "LookupError: no such state"),
    "columns": ("date32[day]", "of type date32[day] has a value that Python does not have"),
}
"""By component: the type and the error."""


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_only_the_value_that_does_not_decode_fails(sandbox: Sandbox, mode: str) -> None:
    """Two tasks of each bolt get all of its neighbours: one beside the spout, one in the other container."""
    run = sandbox.run("undecodable.py", args=("--mode", mode))
    report = run.finished()
    for bolt, sources in (("rows", set(REASONS)), ("batches", set(REASONS) - {"columns"})):
        results = run.results(bolt)
        assert len(results) == 2
        for rows in results.values():
            assert sorted(rows) == [[source, *GOOD] for source in sorted(sources)]
        assert report.components[bolt].failed == 2 * len(sources)
    for component in REASONS:
        ((acked, failed),) = run.results(component).values()
        settled: list[object] = (
            [VALUES - 1, [BAD]] if mode == "ATLEAST_ONCE" else [VALUES, []]
        )  # others ack at the emit
        assert [acked, failed] == settled, component
    for component, (kind, error) in REASONS.items():
        start = f"decoding field 'value' ({kind}) of stream 'default' of '{component}'"
        lines = [line for line in run.stderr.splitlines() if start in line and line.startswith("heron: error:")]
        assert lines, run.all_output
        assert "topology 'undecodable', component '" in lines[0]
        assert f"a value of type {kind} cannot be decoded (" in lines[0]
        assert error in lines[0]
        assert "the tuple is failed and the task continues" in lines[0]
