"""Sections: commands that run side by side, each with one result."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from heron.clock import monotonic_s

__all__ = ["Result", "Section", "run_beside", "summary"]

_NOTHING_SELECTED = 5  # the exit code of pytest


@dataclass(frozen=True, slots=True)
class Section:
    """`command` runs in the root of the repository. The output of a `live` section is shown while it runs.

    A section of pytest that `may_be_empty` passes when nothing is selected.
    """

    name: str
    command: tuple[str, ...]
    live: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a section ended."""

    section: str
    code: int
    seconds: float

    @property
    def text(self) -> str:
        """For one line of output."""
        outcome = "passed" if self.code == 0 else f"FAILED (exit code {self.code})"
        return f"{self.section}: {outcome}, {self.seconds:.0f} s"


def run_beside(
    sections: Sequence[Section], root: Path, write: Callable[[str], None], at_once: int | None = None
) -> list[Result]:
    """Run sections at the same time, in their order if at most `at_once` may run; a failure ends no other section.

    The output of a section that is not live is written when the section ends, and only if it failed. When this thread
    is interrupted, all sections are ended, and no other one begins.
    """
    running: set[subprocess.Popen[bytes]] = set()
    lock = threading.Lock()

    def run(section: Section) -> Result:
        began_s = monotonic_s()
        with tempfile.TemporaryFile() as output:
            shown = None if section.live else output
            with lock:
                process = subprocess.Popen(section.command, cwd=root, stdout=shown, stderr=shown)
                running.add(process)
            code = process.wait()
            if section.may_be_empty and code == _NOTHING_SELECTED:
                code = 0
            result = Result(section.name, code, monotonic_s() - began_s)
            output.seek(0)
            with lock:
                running.discard(process)
                write("\n".join([*([output.read().decode(errors="replace")] if code else []), result.text]))
        return result

    with ThreadPoolExecutor(at_once or len(sections)) as pool:
        try:
            waiting = [pool.submit(run, each) for each in sections]
            return [each.result() for each in as_completed(waiting)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with lock:
                for process in running:
                    process.terminate()
            raise


def summary(results: Sequence[Result]) -> str:
    """All results, the failed ones last, where the reader looks first."""
    ordered = sorted(results, key=lambda each: each.code != 0)
    return "\n".join(f"  {each.text}" for each in ordered)
