"""The oracle of tests about faults: the topology ``journal``, of whose lines none may be lost, whatever happens to it.

Its spouts keep what was acked in files, its last bolts what they have seen; nothing of the engine is asked.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Sandbox

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
"""Whoever is killed so often by a test would be given up otherwise, as it should be."""


class Lines:
    """A run of ``journal``; it goes on until it is let go, however long that takes."""

    def __init__(self, sandbox: Sandbox, *options: str, pause_s: float = 0.02, command: str = "run") -> None:
        """Each spout emits ten lines, pauses, and so on."""
        self.run = sandbox.start("journal.py", *options, args=("--pause", str(pause_s)), command=command)

    def acked(self) -> list[int]:
        """The lines that spouts know to be processed, in the order of each spout."""
        return [int(line) for path in self._files() for line in path.read_text(encoding="utf-8").split()]

    def flow(self, what: str, timeout_s: float = 30.0) -> None:
        """Waits until more lines are acked than now."""
        before = self.acked_bytes()
        self.run.until(lambda: self.acked_bytes() > before + 1000, f"lines after {what}", timeout_s)

    def let_go(self) -> None:
        """No spout begins another line."""
        (self.run.out / "stop").touch()

    def finish(self, timeout_s: float = 60.0) -> int:
        """Lets it end and looks that no line is missing; gives how many words came more than once."""
        self.let_go()
        self.run.finished(timeout_s)
        return self.check()

    def check(self) -> int:
        """Every word of every line was seen, and every line is acked; gives how many words came more than once."""
        rows = [row.split() for row in (self.run.out / "journal").read_text(encoding="utf-8").splitlines()]
        seen = Counter((int(line), word) for line, word, _attempt, _pid in rows)
        taken = [path.read_text(encoding="utf-8").split() for path in self.run.out.glob("taken-*")]
        lines = {line for words in taken if words for line in range(*map(int, words))}
        assert lines
        assert set(seen) == {(line, f"word-{word}-{line % 7}") for line in lines for word in range(WORDS_A_LINE)}
        assert set(self.acked()) == lines
        return seen.total() - len(seen)

    def acked_bytes(self) -> int:
        """The size of all that spouts have written of it."""
        return sum(path.stat().st_size for path in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.run.out.glob("acked-*"))
