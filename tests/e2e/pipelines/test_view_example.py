"""The example with views: what the live side has written is what a reader prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


def test_the_example_prints_the_clicks_of_its_live_days(sandbox: Sandbox, examples: Path) -> None:
    """Two days are live, and no batch has run."""
    program = examples / "pipelines" / "ad_clicks.py"
    arguments = ("--days", "3", "--per-day", "500")
    sandbox.run(program, args=arguments).finished()
    command = [sys.executable, str(program), "--read"]
    ran = subprocess.run(command, env=sandbox.env, capture_output=True, text=True, timeout=60, check=False)
    head, *rows = ran.stdout.splitlines()
    assert head.startswith("history until nothing yet, live ")
    assert sum(int(row.split()[1]) for row in rows) == 1000
