"""Streamlet programs as they are written for heronpy, with the clock of a simulation."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from heron.api.capture import capture_topologies
from heron.errors import TopologyError
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock

MODULES = {
    "builder": "Builder",
    "config": "Config",
    "context": "Context",
    "generator": "Generator",
    "keyedwindow": "KeyedWindow",
    "resources": "Resources",
    "runner": "Runner",
    "streamlet": "Streamlet",
    "transformoperator": "TransformOperator",
    "window": "Window",
    "windowconfig": "WindowConfig",
}

IMPORTS = """
from datetime import timedelta
from heronpy.connectors.mock.arraylooper import ArrayLooper
from heronpy.connectors.textfiles.textfilesgenerator import TextFileGenerator
from heronpy.streamlet.builder import Builder
from heronpy.streamlet.config import Config
from heronpy.streamlet.generator import Generator
from heronpy.streamlet.resources import Resources
from heronpy.streamlet.runner import Runner
from heronpy.streamlet.transformoperator import TransformOperator
from heronpy.streamlet.windowconfig import WindowConfig
builder = Builder()
config = Config()
"""

WORD_COUNT = """
builder.new_source(ArrayLooper(['Tell me a little', 'tell me'], sleep=1)) \\
       .flat_map(lambda line: line.split()) \\
       .map(lambda word: (word.lower(), 1)) \\
       .reduce_by_key_and_window(WindowConfig.create_tumbling_window(timedelta(seconds=10)), lambda x, y: x + y) \\
       .log()
"""

JOIN = """
left = builder.new_source(ArrayLooper([['key1', 'a'], ['key1', 'b']], sleep=5))
right = builder.new_source(ArrayLooper([['key1', 'c'], ['key2', 'd']], sleep=5))
left.join(right, WindowConfig.create_sliding_window(10, 10), lambda x, y: x + y).log()
"""

TRANSFORM = """
class Words(Generator):
    def setup(self, context):
        self.words = iter(['a', 'b'])
        self.index = context.get_partition_index()
    def get(self):
        return next(self.words, None)

class Twice(TransformOperator):
    def setup(self, context):
        self.context = context
    def transform(self, word):
        self.context.emit(word)
        self.context.emit('%s of %d' % (word, self.context.get_num_partitions()))

words = builder.new_source(Words()).set_name('words').set_num_partitions(1)
words.repartition(2, lambda word, n: ord(word) % n).transform(Twice()).clone(2)[1].log()
"""

RUN = "\nRunner().run('program', config, builder)\n"

FILES = """
builder.new_source(TextFileGenerator(PATTERN)).union(builder.new_source(ArrayLooper([]))).consume(print)
"""


def lines(program: str, seconds: float, capsys: pytest.CaptureFixture[str], **names: Any) -> list[str]:  # noqa: ANN401
    """What the program prints within these seconds."""
    module = type(sys)("heronpy_program")
    sys.modules[module.__name__] = module
    vars(module).update(names)
    try:
        with capture_topologies() as captured:
            exec(IMPORTS + program + RUN, vars(module))  # noqa: S102  # the program under test
        with Simulation(captured[0], clock=FakeClock(wall_s=0.0)) as simulation:
            for _ in range(int(seconds * 10)):
                simulation.advance(0.1)
            assert simulation.errors() == ()
    finally:
        del sys.modules[module.__name__]
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("module", MODULES)
def test_module_has_the_class_of_heronpys(module: str) -> None:
    """Programs import by full paths."""
    found = importlib.import_module(f"heronpy.streamlet.{module}")
    assert found.__all__ == [MODULES[module]]


def test_words_are_counted_in_windows_of_the_clock(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word count of heronpy's examples, on two lines."""
    monkeypatch.setattr("heronpy.connectors.mock.arraylooper.monotonic_s", counted(0.5))
    counts = lines(WORD_COUNT, 12, capsys)
    assert len(counts) == 4
    assert all(line.startswith("(KeyedWindow(key=") for line in counts)
    assert "key='tell', window=Window(1970-01-01T00:00:00.000000Z, 10 s))" in "".join(counts)


def test_streams_are_joined(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The join of heronpy's examples; pairs may be lists."""
    monkeypatch.setattr("heronpy.connectors.mock.arraylooper.monotonic_s", counted(0.05))
    joined = lines(JOIN, 11, capsys)
    assert joined
    assert {line.split(")), ")[1] for line in joined} <= {"'ac')", "'bc')"}


def test_transformers_emit_by_their_context(capsys: pytest.CaptureFixture[str]) -> None:
    """In heronpy itself `transform`, `repartition` and `clone` fail."""
    assert sorted(lines(TRANSFORM, 1, capsys)) == ["a", "a of 2", "b", "b of 2"]


def test_text_files_are_read_in_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In heronpy lines come in reverse, and `consume` fails."""
    (tmp_path / "b.txt").write_text("three\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    assert lines(FILES, 1, capsys, PATTERN=str(tmp_path / "*.txt")) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("heronpy.dsl.builder", "Builder", "heronpy.dsl.builder.Builder: the package was renamed; import heronpy"),
        ("heronpy.connectors.pulsar.pulsarspout", "PulsarSpout", "there is no connector for Pulsar"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_used(module: str, name: str, message: str) -> None:
    """The import succeeds: a program may import more than it uses."""
    cls = getattr(importlib.import_module(module), name)
    with pytest.raises(TopologyError, match=message):
        cls()


def counted(step_s: float) -> Any:  # noqa: ANN401
    """A clock that advances at each reading, as the simulation does not hand its own to a source."""
    now_s = 0.0

    def read() -> float:
        nonlocal now_s
        now_s += step_s
        return now_s

    return read
