"""`heron run --simulate`: its report and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron_testing.waiting import Eventually

TOPOLOGY = """
from heron.api import Bolt, Grouping, Spout, Topology

class Lines(Spout):
    outputs = ["line"]
    def initialize(self, config, context):
        self.left = config["lines"]
    def next_tuple(self):
        if self.left == 0:
            self.end()
        else:
            self.left -= 1
            self.emit([f"line {self.left}"])

class Count(Bolt):
    outputs = ["count"]
    def initialize(self, config, context):
        self.count = 0
        open(config["mark"], "w").close()
    def process(self, tup):
        self.count += 1
    def finish(self):
        print("counted", self.count)

class Words(Topology):
    config = {"lines": LINES, "mark": "MARK"}
    lines = Lines.spec(par=1)
    count = Count.spec(par=1, inputs={lines: Grouping.SHUFFLE})
"""

ENDLESS = -1
LIMIT_S = 30.0

Simulation = Callable[[int], "subprocess.Popen[str]"]


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """Start a simulation of a topology with a number of lines; its process is killed if the test leaves it."""
    (tmp_path / "home").mkdir()
    environ = {**os.environ, "HOME": str(tmp_path / "home")}
    started: list[subprocess.Popen[str]] = []

    def start(lines: int) -> subprocess.Popen[str]:
        file = tmp_path / "words.py"
        text = TOPOLOGY.replace("LINES", str(lines)).replace("MARK", str(tmp_path / "mark"))
        file.write_text(text, encoding="utf-8")
        heron = str(Path(sys.executable).with_name("heron"))
        command = [heron, "run", str(file), "--simulate", "--report", str(tmp_path / "report.json")]
        started.append(
            subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def test_a_simulation_counts_the_same_in_one_process(simulation: Simulation, tmp_path: Path) -> None:
    """The same classes give the same report, so that breakpoints are useful there."""
    command = simulation(1000)
    out, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 0, error
    assert out == "counted 1000\n"
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["state"], report["components"]["count"]["executed"]) == ("finished", 1000)
    for folder in ("jobs", "packages", "state"):
        assert not [each for each in (tmp_path / "home" / ".heron" / folder).rglob("[!.]*") if each.is_file()]


def test_ctrl_c_ends_a_simulation_anywhere(simulation: Simulation, tmp_path: Path, eventually: Eventually) -> None:
    """The author's code runs in the process of the command, and must not block the end."""
    command = simulation(ENDLESS)
    eventually((tmp_path / "mark").exists, LIMIT_S, "the bolt runs")
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=LIMIT_S)
    assert command.returncode == 130
