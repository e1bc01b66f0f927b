"""The Python client on a real topology: the example of its page, and a restart."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

PAGE = Path(__file__).resolve().parents[3] / "docs" / "client.md"
WORDS = """
from heron.api import Bolt, Grouping, Spout, TopologyBuilder

class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self):
        self.emit(["to be or not to be"])

class Count(Bolt):
    def process(self, tup):
        pass

builder = TopologyBuilder("words")
lines = builder.add_spout("lines", Lines, par=1)
builder.add_bolt("count", Count, par=1, inputs={lines: Grouping.SHUFFLE})
"""
RESTART = """
    print(client.restart(name, 1))
    print(client.kill(name).manner)
"""


@pytest.mark.guarantee
def test_the_example_of_the_page_runs(sandbox: Sandbox) -> None:
    """Every call of the page, and a restart, on one topology; nothing is left afterwards.

    Guarantee: the example of the Python client runs.
    """
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    *lines, last = code.strip().splitlines()
    assert "client.kill" in last
    (sandbox.root / "words.py").write_text(WORDS, encoding="utf-8")
    sandbox.submits = True
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines) + RESTART],
        cwd=sandbox.root,
        env=sandbox.env,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^count (starting|running)$", ran.stdout, re.MULTILINE)  # it may still start
    assert "['running']" in ran.stdout
    assert "RestartedContainer(container_id=1, took_s=" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "HowKilled.ASKED"
