"""The examples with effectively once: their output is exact, although processes die and tasks come and go."""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


LINES = 400_000


def text_of(sandbox: Sandbox, lines: int = LINES) -> Path:
    """Write a text whose lines differ."""
    path = sandbox.root / "text.txt"
    path.write_text("".join(f"line {number} w{number % 50}\n" for number in range(lines)), encoding="utf-8")
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
    run.grows(lambda: len(committed_lines(out)), "committed lines after the deaths")
    run.finished()
    check_copy(out, text)


def check_copy(out: Path, text: Path) -> None:
    """Each line of the text is committed once, with its offset."""
    lines = sorted((int(offset), line) for offset, line in (each.split("\t") for each in committed_lines(out)))
    assert "".join(f"{line}\n" for _, line in lines) == text.read_text(encoding="utf-8")
    assert [offset for offset, _ in lines] == [0, *accumulate(len(line) + 1 for _, line in lines)][:-1]


def test_ranges_move_between_tasks_and_files_have_each_line_once(sandbox: Sandbox, examples: Path) -> None:
    """A limit of output keeps the spouts reading until both updates are complete; an ended spout refuses updates."""
    text, out = text_of(sandbox, 150_000), sandbox.root / "copy"
    args = ("--text", str(text), "--out", str(out), "--interval", "0.3")
    limit = "topology.component.output.bps"
    run = sandbox.start(examples / "exactly_once_files.py", "--set", f"{limit}=40000", args=args)

    def commits(when: str) -> None:
        run.grows(lambda: len(committed_lines(out)), f"committed lines {when}")

    commits("at the start")
    sandbox.update("exactly_once_files", "ranges:4", "sink:3")
    commits("of more tasks")
    sandbox.update("exactly_once_files", "ranges:1", "sink:1")
    commits("of fewer tasks")
    sandbox.output_of("update", "exactly_once_files", "--runtime-config", f"{limit}=-1")
    run.finished()
    check_copy(out, text)


def append_entries(log: Path, start: int, end: int) -> None:
    """Append the entries from `start` to `end` of each of six accounts in three partitions."""
    for account in range(6):
        with (log / str(account % 3)).open("a", encoding="utf-8") as file:
            file.writelines(f"{account} {sequence} {sequence}\n" for sequence in range(start, end))


def test_partitions_move_between_tasks_and_each_entry_counts_once(sandbox: Sandbox, examples: Path) -> None:
    """The log grows before, between and after the updates. An entry that is missing, early or repeated fails."""
    log, out, entries = sandbox.root / "log", sandbox.root / "balances.tsv", 20_000
    log.mkdir()
    append_entries(log, 1, entries)
    args = ("--log", str(log), "--out", str(out), "--interval", "0.3")
    run = sandbox.start(examples / "partitioned_log.py", args=args)
    sandbox.wait_for_state(run, "partitioned_log")

    def grows(step: int) -> None:
        before = sandbox.executed("partitioned_log", "balances")
        append_entries(log, entries * step, entries * (step + 1))
        run.until(lambda: sandbox.executed("partitioned_log", "balances") > before, "counted entries")

    grows(1)
    sandbox.update("partitioned_log", "log:3", "balances:4")
    grows(2)
    sandbox.update("partitioned_log", "log:1", "balances:1")
    append_entries(log, entries * 3, entries * 4)
    kill(run, "log", "balances")
    (log / "closed").touch()
    assert run.finished().components["balances"].failed == 0
    total = sum(range(entries * 4))
    assert out.read_text(encoding="utf-8") == "".join(f"{each}\t{entries * 4 - 1}\t{total}\n" for each in range(6))


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
    run.grows(counted, "counted words after the deaths")
    run.finished()
    database = sqlite3.connect(path)
    found = Counter(dict(database.execute("SELECT word, count FROM counts")))
    left = database.execute("SELECT count(*) FROM pending").fetchone()
    database.close()
    assert found == Counter(text.read_text(encoding="utf-8").split())
    assert left == (0,)
