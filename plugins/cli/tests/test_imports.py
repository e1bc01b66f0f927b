"""What a command imports: a person waits for it, and beside a busy topology for several times as long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = """
import sys

from heron_cli.main import heron

heron(sys.argv[1:], prog_name="heron", standalone_mode=False)
print(*sys.modules)
"""

NEVER = {"asyncio", "http", "numpy", "pyarrow", "rich", "sqlite3", "ssl", "zmq"}
NEVER |= {"heron.ipc.query", "heron.planner.verify", "heron.spi.health_values", "heron.spi.task_memory"}
NEVER |= {"heron_cli.client", "heron_cli.launch.loading", "heron_cli.launch.submission", "heron_cli.topologies.logs"}
"""Libraries for tables, data and servers; what loads programs, asks tasks and reads logs."""


@pytest.mark.parametrize(
    ("words", "needed", "most"),
    [
        (["list"], set(), 144),
        (["status", "--help"], set(), 105),
        (["update", "Words", "--component-parallelism", "count:2"], {"sqlite3"}, 192),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_command_imports_what_it_needs(words: list[str], needed: set[str], most: int, tmp_path: Path) -> None:
    """The number counts modules of Heron alone; those of libraries change with their versions."""
    code = [sys.executable, "-P", "-c", COMMAND, *words]
    environ = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(code, capture_output=True, text=True, check=True, cwd=tmp_path, env=environ)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & NEVER - needed
    own = {each for each in loaded if each.startswith("heron")}
    assert len(own) <= most, sorted(own)
