"""`heron run --simulate` on the examples and on a file that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from heron.api.capture import TopologySource
from heron.kernel.author_topology import choose_topology
from heron.kernel.manifest import PackageManifest
from heron.kernel.user_code import load_user_code
from heron_simulator.simulator import SimulationResult, simulate

EXAMPLES = Path(__file__).parents[3] / "examples"

pytestmark = pytest.mark.usefixtures("unchanged_process")


def run(path: Path, *argv: str, timeout_s: float | None = 60) -> SimulationResult:
    """Loads and simulates a file as the command does."""
    code = load_user_code(path, argv)
    source: TopologySource = choose_topology(code, None)
    definition = source.definition()
    manifest = PackageManifest(definition.name, path.stem, {}, script=code.ran_main_block, argv=argv)
    del sys.modules[path.stem]
    return simulate(definition, path.parent, manifest, timeout_s=timeout_s)


def test_word_count_counts_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo's topology on a small text."""
    (tmp_path / "text").write_text("the heron and the ibis\nTHE END\n")
    out = tmp_path / "out"
    result = run(EXAMPLES / "word_count.py", "--text", str(tmp_path / "text"), "--out", str(out), "--loops", "3")
    assert (result.state, result.error) == ("finished", "")
    assert out.read_text() == "the\t9\nand\t3\nend\t3\nheron\t3\nibis\t3\n"
    assert result.components["lines"].emitted == 6
    assert result.components["split"].executed == 6
    assert result.components["count"].executed == 21
    assert "counts verified: 21 words, 5 distinct" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "argv", "verified"),
    [
        pytest.param(
            *("multi_stream", (), ["booked verified", "refused orders verified", "all orders verified: 20000"]),
            marks=pytest.mark.matrix,
        ),
        pytest.param(
            *(
                "custom_grouping",
                (),
                ["words from 'a' verified", "words from 'p' verified", "inspected words verified"],
            ),
            marks=pytest.mark.matrix,
        ),
        ("topology_class", (), ["total verified"]),
        ("trends", ("--mentions", "3000"), ["trends verified: 6000 mentions"]),
    ],
)
def test_examples_verify_themselves(
    name: str, argv: tuple[str, ...], verified: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each example checks its own result."""
    result = run(EXAMPLES / f"{name}.py", *argv)
    assert (result.state, result.error) == ("finished", "")
    assert all(counts.failed == 0 for counts in result.components.values())
    printed = capsys.readouterr().out
    assert all(line in printed for line in verified), printed


FAULTY = """
from heron.api import Bolt, Spout, TopologyBuilder

class Numbers(Spout):
    outputs = ("number",)
    def next_tuple(self):
        {next_tuple}

class Last(Bolt):
    def __init__(self, delegate=None):
        super().__init__(delegate)
        {construct}
    def process(self, tup):
        pass
    def finish(self):
        {finish}

builder = TopologyBuilder("faulty")
builder.add_bolt("last", Last, 1, [builder.add_spout("numbers", Numbers, 1)])
"""


def faulty(folder: Path, *, next_tuple: str = "self.end()", construct: str = "pass", finish: str = "pass") -> Path:
    """A file with a topology of these parts."""
    path = folder / "faulty_topology.py"
    path.write_text(FAULTY.format(next_tuple=next_tuple, construct=construct, finish=finish))
    return path


@pytest.mark.parametrize("place", ["construct", "finish"])
def test_failure_fails_the_run(tmp_path: Path, place: str) -> None:
    """The run fails, with exit code 1, if a component cannot be constructed or if its `finish` raises."""
    result = run(faulty(tmp_path, **{place: "raise OSError('no disk')"}))
    assert result.state == "failed"
    assert "raised OSError: no disk; at " in result.error
    assert "faulty_topology.py, line" in result.error


def test_timeout_kills_the_run(tmp_path: Path) -> None:
    """A topology without an end is stopped in time."""
    result = run(faulty(tmp_path, next_tuple="pass"), timeout_s=0.05)
    assert (result.state, result.error) == ("killed", "not finished within 0.05 s")
