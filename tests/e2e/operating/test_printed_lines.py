"""Whatever tasks print reaches the screen of `heron run`, and the files stay small."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

LINES = 300_000
LIMIT = 65536
BLOCK = 1 << 20


def test_no_printed_line_is_lost_although_files_are_small(sandbox: Sandbox) -> None:
    """A person decides by what the screen shows. The lines are in the order of each task, with those of `finish`."""
    run = sandbox.run("printing.py", "--set", f"heron.executor.output.max.bytes={LIMIT}")
    run.finished()
    shown: dict[str, list[int]] = {"print/1": [], "print/2": []}
    others = []
    for line in run.stdout.splitlines():
        if found := re.fullmatch(r"(print/\d+) \| line (\d+)", line):
            shown[found[1]].append(int(found[2]))
        else:
            others.append(line)
    for who, numbers in shown.items():
        assert numbers == list(range(LINES // 2)), f"{who}: {len(numbers)} lines"
    programs = [f"print/{task} | of a program" for task in (1, 2)]
    assert sorted(others) == sorted([*programs, *(f"last {number}" for number in range(100))])
    for task in (1, 2):
        files = list((sandbox.home / ".heron" / "logs").glob(f"*/print-{task}.out*"))
        assert sorted(file.suffix for file in files) == [".1", ".2", ".out"]
        assert all(file.stat().st_size <= LIMIT + BLOCK for file in files)
        newest = next(file for file in files if file.suffix == ".out")
        assert newest.read_bytes().endswith(b"line %d\n" % (LINES // 2 - 1))
