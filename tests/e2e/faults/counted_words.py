"""A run of ``steady_words.py``, which counts words until it is told to stop; its counts are then exact."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["CountedWords"]

_LINE = Counter(["the", "quick", "brown", "fox", "and", "the", "lazy", "dog"])


class CountedWords:
    """The run, and the options by which commands find it."""

    def __init__(self, sandbox: Sandbox, run: HeronRun, profile: tuple[str, str]) -> None:
        self.run = run
        self._sandbox = sandbox
        self._profile = profile

    def counted(self) -> int:
        """Return the number of words counted so far."""
        found = (path.read_text(encoding="utf-8") for path in self.run.out.glob("progress-*"))
        return sum(int(text or 0) for text in found)

    def flows(self) -> None:
        """Wait until the count has grown clearly."""
        self.run.grows(self.counted, "words are counted", by=2000)

    def status(self, code: int = 0) -> str:
        """Return the text output of `heron status`."""
        return self._sandbox.output_of("status", "steady_words", *self._profile, code=code)

    def processes(self) -> dict[tuple[int, str], int]:
        """Return process ids by container and name."""
        status = self._sandbox.status_document("steady_words", *self._profile)["status"]
        return {(each["container_id"], each["process"]): each["pid"] for each in status["processes"]}

    def ends_exactly(self) -> None:
        """End the run, and check that each word of each line was counted once."""
        (self.run.out / "stop").touch()
        report = self.run.finished()
        (((lines,),),) = self.run.results("lines").values()
        counted = Counter[str]()
        for rows in self.run.results("count").values():
            counted.update({str(word): int(str(count)) for word, count in rows})
        assert counted == {word: count * int(str(lines)) for word, count in _LINE.items()}
        assert report.components["lines"].emitted == lines

    def most(self) -> int:
        """Return the words that the busier bolt task has counted, after its end."""
        return max(sum(int(str(row[1])) for row in rows) for rows in self.run.results("count").values())
