"""Pipelines that read logs while the real logrotate rotates them: each line is there once, whatever dies."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing_servers.logrotate import Logrotate

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

LOGS = [f"{name}.log" for name in ("shop", "pay", "mail", "search")]
_PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")


class Writing:
    """Programs that log. They wait while a rotation copies, because logrotate itself loses lines then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[str] = []
        folder.mkdir(parents=True)

    def more(self, count: int = 200) -> None:
        """Append lines to each log."""
        for log in LOGS:
            begin = len(self.written)
            lines = [f"line {begin + number}" for number in range(count)]
            with (self.folder / log).open("a", encoding="ascii") as file:
                file.write("".join(f"{line}\n" for line in lines))
            self.written += [f"{log} {line}" for line in lines]


def committed(run: HeronRun) -> Counter[str]:
    """How often each line belongs to a complete checkpoint."""
    texts = [path.read_text(encoding="utf-8") for path in run.out.glob("copies/part-*.txt")]
    return Counter(line for text in texts for line in text.splitlines())


def has_committed(run: HeronRun, lines: int) -> bool:
    """Whether so many lines belong to complete checkpoints."""
    return sum(committed(run).values()) >= lines


def kill(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    run.until(lambda: run.processes(role, name), f"a {role}{name}")
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


@pytest.mark.parametrize("how", [("create", "compress", "delaycompress"), ("copytruncate", "compress")], ids="-".join)
def test_each_line_is_there_once_across_ten_rotations(
    sandbox: Sandbox, logrotate: Logrotate, how: tuple[str, ...]
) -> None:
    """Tasks of the source and of the sink die between and during rotations, and logs move to other tasks."""
    run = sandbox.start("rotated_lines.py", *_PATIENT)
    writing = Writing(run.out / "logs")
    writing.more()
    run.until(lambda: committed(run), "the first lines")
    for number in range(10):
        writing.more()
        if number % 3 == 0:
            role, name = (("instance", "/lines"), ("instance", "/written"), ("stmgr", ""))[number // 3 % 3]
            kill(run, role, name)
        if number == 5:
            sandbox.update("rotated_lines", "lines-to-texts:3")
        logrotate.rotate(writing.folder / "*.log", *how)
        if number % 2:
            behind = len(writing.written) // 2
            run.until(partial(has_committed, run, behind), "half of the lines")
    with (writing.folder / LOGS[0]).open("ab") as file:
        file.write(b"no text: \xff\n")
    writing.more(1)
    run.until(lambda: sum(committed(run).values()) >= len(writing.written), "all lines")
    assert committed(run) == Counter(writing.written)
    (letter,) = json.loads(sandbox.output_of("dead-letters", "rotated_lines", "list", "--json"))
    assert letter["step"] == "texts"
    assert "no text" in letter["values"][0]
