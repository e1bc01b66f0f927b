"""What tests on shared clusters have in common: commands with a profile, and the demo."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING, Any

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["BACK_S", "OnCluster"]

BACK_S = 120.0
"""How long a cluster may take to bring a container back."""


class OnCluster:
    """The commands of a sandbox with one profile, whose scheduler is a cluster."""

    def __init__(self, sandbox: Sandbox, profile: str) -> None:
        self.sandbox, self.profile = sandbox, profile

    def output_of(self, *words: str, code: int = 0) -> str:
        """Return the output of a command about a topology."""
        return self.sandbox.output_of(*words, "--profile", self.profile, code=code)

    def submit(self, program: str | Path, *args: str, options: tuple[str, ...] = ()) -> HeronRun:
        """Submit a topology."""
        run = self.sandbox.start(program, *options, args=args, command=f"submit {self.profile}")
        assert run.wait() == 0, run.all_output
        return run

    def status(self, topology: str) -> dict[str, Any]:
        """Return the output of `heron status`; empty while the topology manager is being restarted."""
        try:
            return self.sandbox.status_document(topology, "--profile", self.profile)
        except AssertionError:
            return {}

    def ends(self, topology: str, *, alone: bool = True) -> None:
        """Wait until a topology is listed as finished and, if it is alone, nothing is left."""

        def over() -> bool:
            listed = json.loads(self.sandbox.output_of("list", self.profile, "--json"))
            finished = any(each["name"] == topology and each["state"] == "finished" for each in listed)
            return finished and not (alone and self.sandbox.remaining())

        wait_until(over, BACK_S, f"{topology} has ended and left nothing")

    def count_example(
        self, examples: Path, loops: int, start: Callable[[HeronRun], None] | None = None, options: tuple[str, ...] = ()
    ) -> str:
        """Run the demo to its end, check that its counts are those of the text, and return a status of it.

        `start` gets the submission that had these `options`.
        """
        counts = self.sandbox.root / "counts.tsv"
        arguments = ("--loops", str(loops), "--out", str(counts))
        submission = self.submit(examples / "word_count.py", *arguments, options=options)
        if start:
            start(submission)
        status = self.output_of("status", "word_count")
        self.ends("word_count")
        words = Counter(word for text in topics.topics.values() for word in text.lower().split())
        rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
        assert {word: int(count) for word, count in rows} == {word: count * loops for word, count in words.items()}
        return status
