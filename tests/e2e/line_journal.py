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
    """A run of ``journal``; it goes on until `finish`, as far as its lines last."""

    def __init__(
        self, sandbox: Sandbox, lines: int, *options: str, pause_s: float = 0.02, command: str = "run"
    ) -> None:
        self._lines = lines
        args = ("--lines", str(lines), "--pause", str(pause_s))
        number = len(sandbox.runs)
        self._held = sandbox.root / f"out{number}" / "held"
        self.run = sandbox.start("journal.py", *options, args=args, command=command)
        self._held.touch()

    def acked(self) -> list[int]:
        """The lines that spouts know to be processed, in the order of each spout."""
        return [int(line) for path in self._files() for line in path.read_text(encoding="utf-8").split()]

    def flow(self, what: str, timeout_s: float = 30.0) -> None:
        """Waits until more lines are acked than now."""
        before = self._size()
        self.run.until(lambda: self._size() > before + 1000, f"lines after {what}", timeout_s)

    def finish(self, timeout_s: float = 60.0) -> int:
        """Lets it end and looks that no line is missing; gives how many words came more than once."""
        self._held.with_name("hurry").touch()
        self._held.unlink()
        self.run.finished(timeout_s)
        return self.check()

    def check(self) -> int:
        """Every word of every line was seen, and every line is acked; gives how many words came more than once."""
        rows = [row.split() for row in (self.run.out / "journal").read_text(encoding="utf-8").splitlines()]
        seen = Counter((int(line), word) for line, word, _attempt, _pid in rows)
        wanted = {(line, f"word-{word}-{line % 7}") for line in range(self._lines) for word in range(WORDS_A_LINE)}
        assert set(seen) == wanted
        assert set(self.acked()) == set(range(self._lines))
        return seen.total() - len(seen)

    def _files(self) -> list[Path]:
        return sorted(self.run.out.glob("acked-*"))

    def _size(self) -> int:
        return sum(path.stat().st_size for path in self._files())
