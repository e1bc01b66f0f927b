"""The checks of tests about faults: the topology ``journal``, which must lose no line.

Its spouts write acked lines to files, and its last bolts write received words. The engine takes no part in the check.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["PATIENT", "SCALED", "Lines"]

WORDS_A_LINE = 3

SCALED = (
    *("--set", "heron.heartbeat.s=0.1"),
    *("--set", "heron.network.timeout.s=1.5"),
    *("--set", "heron.silence.s=6"),
    *("--set", "heron.metrics.export.s=0.1"),
)
"""The engine's times, ten times shorter: 3 s in a test are 30 s in operation."""

PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")
"""Otherwise the engine would rightly leave down a process that a test kills this often."""


class Lines:
    """A run of ``journal``; it goes on until `let_go`, without a time limit."""

    def __init__(self, sandbox: Sandbox, *options: str, pause_s: float = 0.1, command: str = "run") -> None:
        """Each spout emits ten lines, pauses, and repeats this."""
        self.run = sandbox.start("journal.py", *options, args=("--pause", str(pause_s)), command=command)

    def acked(self) -> list[int]:
        """Return the acked lines, in the order of each spout."""
        return [int(line) for path in self._files() for line in path.read_text(encoding="utf-8").split()]

    def flow(self, what: str, timeout_s: float = 30.0) -> None:
        """Wait until more lines are acked than now."""
        self.run.grows(self.acked_bytes, f"lines after {what}", 500, timeout_s)

    def let_go(self) -> None:
        """Tell the spouts to begin no more lines."""
        (self.run.out / "stop").touch()

    def finish(self, timeout_s: float = 60.0) -> int:
        """End the run and check that no line is missing; return the number of words that came more than once."""
        self.let_go()
        self.run.finished(timeout_s)
        return self.check()

    def check(self) -> int:
        """Check that every word of every line arrived and every line is acked; return the number of duplicate words."""
        rows = [row.split() for row in (self.run.out / "journal").read_text(encoding="utf-8").splitlines()]
        seen = Counter((int(line), word) for line, word, _attempt, _pid in rows)
        taken = [path.read_text(encoding="utf-8").split() for path in self.run.out.glob("taken-*")]
        lines = {line for words in taken if words for line in range(*map(int, words))}
        assert lines
        assert set(seen) == {(line, f"word-{word}-{line % 7}") for line in lines for word in range(WORDS_A_LINE)}
        assert set(self.acked()) == lines
        return seen.total() - len(seen)

    def acked_bytes(self) -> int:
        """Return the size of the files of acked lines."""
        return sum(path.stat().st_size for path in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.run.out.glob("acked-*"))
