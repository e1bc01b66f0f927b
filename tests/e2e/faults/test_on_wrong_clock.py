"""A wall clock that jumps while data flows: durations use another clock, so only dates are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron.clock import monotonic_s, wall_s
from heron_testing_servers.absence import not_here
from heron_testing_servers.faketime import shifted_clock
from heron_testing_servers.install import ServerNotInstalledError
from line_journal import SCALED, Lines
from test_faults_stopped import everybody

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def shift(sandbox: Sandbox) -> Callable[[str], None]:
    """Shift the wall clock of all processes of the sandbox."""
    try:
        variables = shifted_clock("+0")
    except ServerNotInstalledError as error:
        not_here(str(error))
    del variables["FAKETIME"]
    file = sandbox.root / "clock"

    def to(by: str) -> None:
        part = file.with_suffix(".part")
        part.write_text(by, encoding="utf-8")
        part.replace(file)

    to("+0")
    sandbox.environ |= {**variables, "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_CACHE_DURATION": "1"}
    return to


def is_ahead(sandbox: Sandbox, by_s: float) -> bool:
    """Return whether the newest date in the topology's metrics is ahead of this clock by `seconds`."""
    newest = max(sandbox.home.glob(".heron/logs/*/metrics-1.jsonl"), key=lambda path: path.stat().st_mtime)
    last = newest.read_text(encoding="utf-8").splitlines()[-2]  # the last line may be incomplete
    return abs(float(json.loads(last)["at_s"]) - wall_s() - by_s) < 60


@pytest.mark.servers
def test_a_clock_that_jumps_an_hour_changes_dates_only(sandbox: Sandbox, shift: Callable[[str], None]) -> None:
    """Forward, then two hours back: no tree expires, no process is given up or replaced, no lease is lost."""
    expires = ("--set", "topology.enable.message.timeouts=true", "--set", "topology.message.timeout.secs=20")
    lines = Lines(sandbox, *SCALED, *expires)
    lines.flow("the start")
    before = everybody(lines.run)
    for by, seconds in (("+1h", 3600), ("-1h", -3600), ("+0", 0)):
        shift(by)
        lines.run.until(partial(is_ahead, sandbox, seconds), f"a clock at {by}")
        lines.flow(f"a jump to {by}")
        assert sandbox.status("journal")["errors"] == []
    assert everybody(lines.run) == before
    assert lines.finish() == 0, "a tree was failed and its line came again"
    text = sandbox.log_text("*.log")
    assert "is silent" not in text
    assert '"leading, epoch ' in text
    assert text.count('"leading, epoch ') == 1


@pytest.mark.servers
def test_a_clock_that_jumps_an_hour_changes_no_checkpoint(sandbox: Sandbox, shift: Callable[[str], None]) -> None:
    """The interval goes on as before: no checkpoint is skipped, hurried, failed or restored."""
    run = sandbox.start("exactly_once.py", *SCALED, args=("--interval", "1.0"))
    run.until(lambda: committed(run.out), "committed lines")
    for by, seconds in (("+1h", 3600), ("-1h", -3600), ("+0", 0)):
        shift(by)
        run.until(partial(is_ahead, sandbox, seconds), f"a clock at {by}")
        before, began_s = checkpoints(sandbox), monotonic_s()
        run.until(partial(has_completed, sandbox, before["complete"] + 3), "three checkpoints")
        after, took_s = checkpoints(sandbox), monotonic_s() - began_s
        assert after["complete"] - before["complete"] <= took_s + 2, "one in each second, and those at both ends"
        assert (after["failed"], after["restores"]) == (0, 0)
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0


def has_completed(sandbox: Sandbox, number: int) -> bool:
    """Return whether the checkpoint with this number, or a later one, is complete."""
    return bool(checkpoints(sandbox)["complete"] >= number)


def checkpoints(sandbox: Sandbox) -> dict[str, Any]:
    """Return the status of the checkpoints."""
    found: dict[str, Any] = sandbox.status_document("exactly_once", "--timeout", "60")["status"]["checkpoints"]
    return found
