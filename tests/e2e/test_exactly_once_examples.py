"""The examples with effectively once: their output is exact, although processes die."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

pytestmark = pytest.mark.timeout(240)

LINES = 400_000


def text_of(sandbox: Sandbox) -> Path:
    """Write a text whose lines differ."""
    path = sandbox.root / "text.txt"
    path.write_text("".join(f"line {number} w{number % 50}\n" for number in range(LINES)), encoding="utf-8")
    return path


def kill(run: HeronRun, *names: str) -> None:
    """Kill a task of each component."""
    for name in names:
        run.processes("instance", f"{name}-")[0].kill()


def committed_lines(out: Path) -> list[str]:
    """Return the committed lines, by task and checkpoint."""
    paths = [path for path in out.glob("*.*") if path.suffix[1:].isdecimal() and "pending" not in path.name]
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def test_files_have_each_line_once_after_kills(sandbox: Sandbox, examples: Path) -> None:
    """The positions and the files of the last checkpoint belong together."""
    text, out = text_of(sandbox), sandbox.root / "copy"
    args = ("--text", str(text), "--out", str(out), "--interval", "0.3")
    run = sandbox.start(examples / "exactly_once_files.py", args=args)
    run.until(lambda: out.exists() and committed_lines(out), "committed lines")
    kill(run, "ranges", "sink")
    before = len(committed_lines(out))
    run.until(lambda: len(committed_lines(out)) > before, "committed lines after the deaths")
    run.finished()
    lines = dict(line.split("\t") for line in committed_lines(out))
    assert len(committed_lines(out)) == len(lines) == LINES
    assert [lines[str(number)] for number in range(LINES)] == text.read_text(encoding="utf-8").splitlines()


def test_the_table_has_exact_counts_after_kills(sandbox: Sandbox, examples: Path) -> None:
    """Rows of checkpoints that were not complete are not counted."""
    text, path = text_of(sandbox), sandbox.root / "words.db"
    args = ("--text", str(text), "--database", str(path), "--interval", "0.3")
    run = sandbox.start(examples / "exactly_once_sqlite.py", args=args)

    def counted() -> int:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30) as database:
            try:
                return int(database.execute("SELECT coalesce(sum(count), 0) FROM counts").fetchone()[0])
            except sqlite3.OperationalError:  # the sinks have not made the tables
                return 0
            finally:
                database.rollback()

    run.until(lambda: path.exists() and counted(), "counted words")
    kill(run, "words", "sink")
    before = counted()
    run.until(lambda: counted() > before, "counted words after the deaths")
    run.finished()
    database = sqlite3.connect(path)
    found = Counter(dict(database.execute("SELECT word, count FROM counts")))
    left = database.execute("SELECT count(*) FROM pending").fetchone()
    database.close()
    assert found == Counter(text.read_text(encoding="utf-8").split())
    assert left == (0,)
