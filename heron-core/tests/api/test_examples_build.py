"""Each example builds, and refuses wrong arguments. Other tests run them with real processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from heron.api import Topology, TopologyBuilder
from heron.api.definition import GroupingKind, TopologyDefinition

EXAMPLES = Path(__file__).parents[3] / "examples"
TASKS = {
    "word_count": 7,
    "trends": 5,
    "multi_stream": 5,
    "custom_grouping": 5,
    "topology_class": 7,
    "exactly_once_files": 4,
    "exactly_once_sqlite": 4,
    "partitioned_log": 5,
    "auto_scale": 3,
}


@pytest.fixture(autouse=True)
def _examples_importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # an example may write its input
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in TASKS:
        sys.modules.pop(name, None)


def example(name: str) -> ModuleType:
    return __import__(name)


def built(name: str) -> TopologyDefinition:
    module = example(name)
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, Topology) and each is not Topology:
            return each.definition()
    builder = getattr(module, name)()
    assert isinstance(builder, TopologyBuilder)
    return builder.build()


def test_every_example_is_checked_here() -> None:
    """A new example must not escape these tests; the tests of the health manager build `hosts`, which imports it."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"hosts"} == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_an_example_builds(name: str) -> None:
    """The defaults fit two cores, and instances can import every class."""
    definition = built(name)
    assert sum(component.parallelism for component in definition.components) == TASKS[name]
    assert {component.entry.split(":")[0] for component in definition.components} == {name}


def test_the_demo_matches_its_description() -> None:
    """It counts by word in several tasks and two containers, and has one report."""
    definition = built("word_count")
    assert definition.config["topology.stmgrs"] == 2
    count = definition.component("count")
    assert count.parallelism > 1
    assert [each.grouping.kind for each in count.inputs] == [GroupingKind.FIELDS]
    assert {each.stream for each in definition.component("report").inputs} == {"default", "so_far"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loops", "0"], "--loops 0 is below 1"),
        (["--text", "missing.txt"], "missing.txt: the file does not exist or is not readable"),
        (["--out", "missing/out.tsv"], "its folder does not exist or is not writable"),
    ],
)
def test_the_demo_refuses_wrong_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command refuses before it starts a process."""
    with pytest.raises(SystemExit) as end:
        example("word_count").word_count(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["exactly_once_files", "exactly_once_sqlite"])
def test_an_example_with_a_text_refuses_one_that_does_not_exist(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command refuses before it starts a process."""
    with pytest.raises(SystemExit):
        getattr(example(name), name)(["--text", "missing.txt"])
    assert "missing.txt: the file does not exist or is not readable" in capsys.readouterr().err


def test_a_log_without_partitions_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing log is written only where the user names none."""
    with pytest.raises(SystemExit):
        example("partitioned_log").partitioned_log(["--log", str(tmp_path)])
    assert f"--log {tmp_path}: the folder does not exist or has no partitions" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["many", None])
def test_a_load_that_is_no_number_is_refused(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spout that cannot read it would fail again and again; a folder is no file."""
    load = tmp_path
    if text is not None:
        load = tmp_path / "load.txt"
        load.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        example("auto_scale").auto_scale(["--load", str(load)])
    assert f"--load {load}: " in capsys.readouterr().err


def test_the_demo_passes_absolute_paths_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances run in another working directory."""
    (tmp_path / "book.txt").write_text("to be or not to be", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    builder = example("word_count").word_count(["--text", "book.txt", "--out", "out.tsv", "--loops", "2"])
    config = builder.build().config
    assert (config["text"], config["out"], config["loops"]) == (
        str(tmp_path / "book.txt"),
        str(tmp_path / "out.tsv"),
        2,
    )
