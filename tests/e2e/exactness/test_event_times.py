"""Windows of event time, with real processes in two containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

ROWS = {10: 20, 20: 15, 30: 10, 40: 10}
"""The rows of each key in each window: two spouts send them, one of them for 15 s only."""


@pytest.mark.parametrize(
    ("mode", "acked"),
    [("ATMOST_ONCE", 0), pytest.param("ATLEAST_ONCE", 5 * sum(ROWS.values()), marks=pytest.mark.guarantee)],
)
def test_windows_close_by_watermarks_with_all_their_rows(sandbox: Sandbox, mode: str, acked: int) -> None:
    """A spout that is idle holds no window open, and no window arrives behind a watermark that has passed it.

    The spouts end only when the last bolt has heard of the last time, so no window is closed by an end. The acks in
    `process_watermark` complete each tree.

    Guarantee: watermarks close a window behind all its rows, and idle sources hold none open.
    """
    run = sandbox.start("event_times.py", args=("--mode", mode))
    report = run.finished()
    (windows,) = run.results("last").values()
    counts = sorted((end_s, key, rows) for key, end_s, rows, _ in windows)
    assert counts == [(end_s, f"k{key}", rows) for end_s, rows in ROWS.items() for key in range(5)]
    late = [each for each in windows if each[3] is not None and float(str(each[3])) >= int(str(each[1]))]
    assert late == []
    assert (report.components["timed"].acked, report.components["timed"].failed) == (acked, 0)


@pytest.mark.starts_nothing
def test_the_simulator_gives_the_same(sandbox: Sandbox) -> None:
    """In one process."""
    run = sandbox.start("event_times.py", "--simulate")
    run.finished()
    (windows,) = run.results("last").values()
    assert sorted((int(str(each[1])), int(str(each[2]))) for each in windows) == [
        (end_s, rows) for end_s, rows in ROWS.items() for _ in range(5)
    ]
