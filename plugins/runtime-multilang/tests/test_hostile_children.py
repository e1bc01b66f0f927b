"""Children that die, hang, flood their outputs or send what is no message, and everything else goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from doubling import CHILDREN, NUMBERS, doubling, kept, source

from heron.clock import SystemClock
from heron.errors import TopologyFailedError
from heron_simulator import Simulation

pytestmark = [pytest.mark.matrix, pytest.mark.leaks_nothing]

ENDS = {
    "exit": "ended with exit code 3; the last lines of its stderr:\n  first\n  the reason; its tuples fail",
    "exit 0": "ended with exit code 0; its tuples fail",
    "signal": "was killed by SIGSEGV; its tuples fail",
    "hang": "was killed, because it gave no sign of life for 2 s (timeout_s)",
    "half": "ended with exit code 4, in the middle of a message (28 bytes)",
    "endless": "the limit is 1048576 bytes (message_bytes); send smaller messages",
    "close": "was killed, because it has closed its stdout",
    "close stdin": "was killed, because it has closed its stdin",
    "rest": "ended with exit code 3",
    "garbled": 'was killed, because the message b\'{"command":"emit","tuple":[1\' cannot be read',
    "nan": "NaN and infinite numbers are not JSON",
    "anchor": "was killed, because it anchored an emit to the tuple '77777', which it does not have, or has settled",
    "command": "was killed, because it sent the command 'dance', which is unknown here",
}
NO_ENDS = {
    "fields": "stream 'default'",
    "stderr": "",
    "stdout": "noise",
    "print": "{'not': json}",
    "error": "reported: a wrong record",
    "metrics": "sent metrics that cannot be used: 'kinds' counts by key, and 1 is not an object",
}


def run(
    how: str, folder: Path, mode: str = "ATLEAST_ONCE", limit_s: float = 30, most: int = 10
) -> tuple[set[tuple[object, ...]], int, int]:
    """What arrives at the end, how many roots failed and how many were acked."""
    command = [sys.executable, str(CHILDREN / "hostile.py"), how, str(folder / "marker")]
    topology = doubling(
        mode, command=command, timeout_s=2, finish_timeout_s=limit_s, message_bytes=2**20, max_pending=most
    )
    with Simulation(topology, clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        numbers = source(simulation)
        return set(kept(simulation).rows), numbers.failed.total(), len(numbers.acked)


@pytest.mark.parametrize("how", ENDS)
def test_a_child_that_ends_is_named_and_started_again(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tuples fail, the spout emits them again, and the next child has them."""
    rows, failed, acked = run(how, tmp_path)
    assert rows == {(number, 2 * number) for number in range(NUMBERS)}
    assert failed > 0
    assert acked == NUMBERS
    shown = capsys.readouterr().err
    assert "component 'double', task" in shown
    assert f"hostile.py {how!r}" in shown or f"hostile.py {how}" in shown
    assert ENDS[how] in shown


@pytest.mark.parametrize("how", NO_ENDS)
def test_a_child_that_only_errs_goes_on(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No tuple fails: the mistake is shown, and that is all."""
    rows, failed, acked = run(how, tmp_path)
    assert rows == {(number, 2 * number) for number in range(NUMBERS)}
    assert failed == 0
    assert acked == NUMBERS
    assert NO_ENDS[how] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("outlives", "it was killed, because it did not end within 0.5 s after the end of its stdin"),
        ("is killed", "it was killed by SIGSEGV"),
    ],
)
def test_a_child_that_fails_after_the_input_fails_the_run(how: str, reason: str, tmp_path: Path) -> None:
    """What it had not emitted is lost, at most once too."""
    with pytest.raises(TopologyFailedError, match=f"failed after all input had ended: {reason}"):
        run(how, tmp_path, "ATMOST_ONCE", limit_s=0.5)


def test_a_child_that_dies_with_the_last_tuples_fails_the_run(tmp_path: Path) -> None:
    """At most once nobody emits them again."""
    with pytest.raises(TopologyFailedError, match="ended with exit code 3"):
        run("rest", tmp_path, "ATMOST_ONCE", most=NUMBERS)


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
def test_a_child_that_forgets_its_tuples_is_named_and_goes_on(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It answers heartbeats, so nothing else ends the wait. Later it anchors to what it has forgotten."""
    rows, failed, acked = run("forgets", tmp_path, mode, limit_s=0.5)
    assert rows == {(number, 2 * number) for number in range(NUMBERS)}
    if mode == "ATLEAST_ONCE":
        assert (failed, acked) == (10, NUMBERS)
    assert "has not settled 10 tuples for 0.5 s (finish_timeout_s)" in capsys.readouterr().err
    assert "settled none" not in caplog.text


def test_effectively_once_a_child_that_forgets_its_tuples_ends_the_task(tmp_path: Path) -> None:
    """The last checkpoint has them; to go on without them would lose them."""
    with pytest.raises(TopologyFailedError, match=r"was killed, because it has not settled 10 tuples for 0\.5 s"):
        run("forgets", tmp_path, "EFFECTIVELY_ONCE", limit_s=0.5)


def test_at_most_once_a_child_need_not_settle_anything(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its tuples are not kept any more after the first wait."""
    rows, _, _ = run("settles none", tmp_path, "ATMOST_ONCE", limit_s=0.5)
    assert rows == {(number, 2 * number) for number in range(NUMBERS)}
    assert "the child has settled none of 10 tuples for 0.5 s (finish_timeout_s)" in caplog.text


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("exits", "may have left out output after all input had ended: it ended with exit code 3; the last lines"),
        ("says bye", "] bye\n"),
    ],
)
def test_a_child_that_ends_in_an_odd_way_is_shown(
    how: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """An exit code is no proof that output is missing: pystorm always exits with 2."""
    rows, failed, _ = run(how, tmp_path)
    assert rows == {(number, 2 * number) for number in range(NUMBERS)}
    assert failed == 0
    assert shown in capsys.readouterr().err + caplog.text
