"""The live view and Ctrl-C on a terminal: the command leads a session with a terminal that the test writes to."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

TERMINAL = (
    sys.executable,
    "-c",
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
)


@pytest.mark.guarantee
def test_the_live_view_shows_the_run_and_ctrl_c_ends_it(sandbox: Sandbox) -> None:
    """A table of components during the run, and a usable terminal afterwards.

    Guarantee: a terminal shows the live view and is usable afterwards.
    """
    run = sandbox.start("steady.py", wrapper=TERMINAL, stdin=subprocess.PIPE)
    assert run.process.stdin is not None
    run.until((run.out / "progress").exists, "tuples")
    for text in ("numbers", "pass", "count", "executed"):
        run.printed(text)
    run.process.stdin.write(b"\x03")
    run.process.stdin.flush()
    assert run.wait() == 130, run.all_output
    assert run.report().state == "killed"
    assert "Traceback" not in run.stdout
    hidden, shown = run.stdout.rfind("\x1b[?25l"), run.stdout.rfind("\x1b[?25h")
    assert hidden < shown, "the cursor is hidden for good"


def test_a_terminal_that_is_closed_ends_the_run(sandbox: Sandbox) -> None:
    """No output is possible any more, and nothing may stay."""
    run = sandbox.start("steady.py", wrapper=TERMINAL, stdin=subprocess.PIPE)
    run.until((run.out / "progress").exists, "tuples")
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not sandbox.remaining(), 8.0, "nothing left")
    assert run.report().state == "killed"


def test_a_closed_output_pipe_ends_the_run(sandbox: Sandbox) -> None:
    """As with ``heron run ... | head``: one line with the reason, no traceback, and nothing stays."""
    reader = ("sh", "-c", '"$0" "$@" | head -n 1')
    run = sandbox.start("chatty.py", wrapper=reader)
    run.wait(30.0)
    wait_until(lambda: not sandbox.remaining(), 8.0, "nothing left")
    assert run.stdout.count("\n") == 1
    assert "nobody reads its output any more" in run.stderr, run.all_output
    assert "Traceback" not in run.stderr, run.all_output
    assert "BrokenPipe" not in run.stderr, run.all_output
    assert run.report().state == "killed"
