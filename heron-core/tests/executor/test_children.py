"""What an executor knows of its children."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from heron.clock import wait_for
from heron.driver_kit.process_starter import ProcessStarter, StartedProcess
from heron.executor.children import Children


class SlowStarter(ProcessStarter):
    """Returns when the child has ended."""

    def start(self, words: Sequence[str], output: IO[bytes]) -> StartedProcess:
        """`ProcessStarter.start`."""
        process = super().start(words, output)
        assert wait_for(lambda: process.poll() is not None, 30.0, 0.01)
        return process


def test_the_last_line_is_known_of_a_child_that_ends_at_once(tmp_path: Path) -> None:
    """Its output begins where the file ended before it was started; an older line is not its reason."""
    output = tmp_path / "word-1.out"
    output.write_text("a line of the child before\n")
    children = Children(starter=SlowStarter())
    children.start("word-1", ["/bin/sh", "-c", "echo no such word; exit 3"], output)
    (ended,) = children.reap()
    assert (ended.code, ended.reason) == (3, "exit code 3: no such word")
    children.start("word-1", ["/bin/sh", "-c", "exit 3"], output)
    (ended,) = children.reap()
    assert ended.reason == "exit code 3"
