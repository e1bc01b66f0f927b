"""A word count on another system: how it is installed, and one measured run of it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.findings import Pace
from bench.job import Job
from bench.records import BenchError
from heron_testing_servers.install import ServerNotInstalledError, installed

__all__ = ["PROGRAMS", "Peer", "PeerRun", "PeerUnavailableError", "words_of"]

PROGRAMS = Path(__file__).with_name("programs")

_WITHIN_S = 600.0


class PeerUnavailableError(BenchError):
    """A system cannot be installed here; the message is reported in place of its figures."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """`per_s` words a second in the window; `counted` words in all, whose counts were right."""

    per_s: float
    counted: int


@dataclass(frozen=True, slots=True)
class Peer:
    """`name` and `version` of a system; `install` makes its environment, and `command` runs it there.

    `command` gets the environment's folder, the file of words, and the pace. `subject` is another name in the results.
    """

    name: str
    version: str
    install: Callable[[Path], None]
    command: Callable[[Path, Path, Pace], Sequence[str]]
    subject: str = ""

    def prepare(self) -> Path:
        """Install it, if it is absent, and return the folder of its environment.

        Raises:
            PeerUnavailableError: when it cannot be installed; names the reason.
        """
        try:
            return installed(f"peer-{self.name}-{self.version}", self.install)
        except ServerNotInstalledError as error:
            msg = f"{self.name} {self.version}: {error}"
            raise PeerUnavailableError(msg) from error

    def run(self, pace: Pace) -> PeerRun:
        """Run it once, and check its counts.

        Raises:
            PeerUnavailableError: when it cannot be installed.
            BenchError: when it fails, or counts wrongly.
        """
        folder = self.prepare()
        with tempfile.TemporaryDirectory(prefix="hb-peer-") as home:
            words = Path(home, "words.txt")
            words.write_text("\n".join(words_of()), encoding="utf-8")
            environment = {**os.environ, "HOME": home, "PYTHONPATH": ""}
            try:
                command = [str(each) for each in self.command(folder, words, pace)]
                ran = subprocess.run(
                    command, capture_output=True, text=True, timeout=_WITHIN_S, cwd=home, env=environment, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                msg = f"{self.name} cannot be run: {error}"
                raise BenchError(msg) from error
        lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
        if ran.returncode or not lines:
            msg = f"{self.name} failed with {ran.returncode}: {(ran.stderr or ran.stdout).strip()[-2000:]}"
            raise BenchError(msg)
        found = json.loads(lines[-1])
        if found["right"] is not True:
            msg = f"{self.name} counted wrongly: {found}"
            raise BenchError(msg)
        return PeerRun(found["per_s"], found["counted"])


def words_of() -> list[str]:
    """Return the words of SimplifiedWordCount."""
    expected: dict[str, int] = Job("simplified_word_count").expected()
    return list(expected)
