"""``heron run --simulate --seed``: the wrong program of the page is found out, and a right one is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heron.errors import PluginError
from heron_testing.seeded.authors.program_command import ProgramSimulation

PAGE = Path(__file__).resolve().parents[4] / "docs" / "simulated-faults.md"
WRONG = re.findall(r"^```python\n# tally\.py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[
    0
]
SAVED = "    def pre_save(self, number):\n        self.state.put('counts', self.counts)\n\n    def process("
RIGHT = (
    WRONG.replace("class Count(Bolt):", "class Count(StatefulComponent, Bolt):")
    .replace("def initialize(self, config, context):", "def init_state(self, state):")
    .replace("self.counts = {}", "self.counts = state.get('counts') or {}; self.state = state")
    .replace("    def process(", SAVED)
    .replace("        with open(", "        return\n        with open(")
)
KILLS = 2
"""A seed that kills the spout's process, its stream manager and an executor."""


def simulated(program: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder, with a home there."""
    (folder / "tally.py").write_text(program, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("heron")), "run", "tally.py", *words]
    environment = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.matrix
def test_the_wrong_program_of_the_page_is_found_out(tmp_path: Path) -> None:
    """Its counts are not in the state, and its lines are written again; its file is as it was before."""
    (tmp_path / "words.log").write_text("before\n", encoding="utf-8")
    ran = simulated(WRONG, tmp_path, "--simulate", "--seed", str(KILLS), "--faults")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(r"^state: self\.counts of task 0 of 'count' is ", ran.stdout, re.MULTILINE)
    assert re.search(r"^repeated: \S+/words\.log has \d+ lines more than once", ran.stdout, re.MULTILINE)
    assert (tmp_path / "words.log").read_text(encoding="utf-8") == "before\n"


@pytest.mark.matrix
def test_a_right_program_shows_no_difference_and_a_seed_repeats(tmp_path: Path) -> None:
    """The same faults change nothing that the program leaves; the wrong one gives the same findings twice."""
    ran = simulated(RIGHT, tmp_path, "--simulate", "--seed", str(KILLS), "--faults")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Tally with seed 2: nothing differs" in ran.stdout
    both = [simulated(WRONG, tmp_path, "--simulate", "--seed", str(KILLS), "--faults").stdout for _ in range(2)]
    assert both[0] == both[1]


@pytest.mark.matrix
def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Before the file is loaded."""
    for words, remedy in {
        ("--seed", "1"): "add --simulate",
        ("--simulate", "--faults"): "add --seed N",
        ("--simulate", "--seed", "1", "--report", "report.json"): "leave it out",
    }.items():
        ran = simulated(WRONG, tmp_path, *words)
        assert (ran.returncode, remedy in ran.stderr) == (2, True), ran.stderr


def test_a_missing_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command does not require the extra."""
    monkeypatch.setitem(sys.modules, "greenlet", None)
    with pytest.raises(PluginError, match=re.escape("pip install 'heron-testing[seeds]'")):
        ProgramSimulation.check_installed()
