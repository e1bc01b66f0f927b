"""What `spec` takes, refuses, and gives to the task."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

from heron.api import Grouping, Spout, Topology, TopologyBuilder
from heron.errors import TopologyError
from heron_runtime_multilang import ShellBolt, ShellSpout
from heron_runtime_multilang.child_process import ChildProcess
from heron_runtime_multilang.child_settings import ChildSettings


class Words(Spout):
    """A source."""

    outputs = ("word",)

    def next_tuple(self) -> None:
        """Emit nothing."""


class Count(ShellBolt):
    """The style of classes: the arguments are attributes."""

    command = "python3 -u"
    script = "my count.py"
    outputs = ("word", "count")


class WordCount(Topology):
    """The style of streamparse."""

    words = ShellSpout.spec(command=["node", "words.js"], outputs=["word"])
    count = ShellBolt.spec(
        command="./count", outputs=["word", "count"], inputs={words: Grouping.fields("word")}, par=2, timeout_s=5
    )


def settings_of(component: str, topology: Any = WordCount) -> ChildSettings:  # noqa: ANN401  # a class or builder
    """The settings that a task would find."""
    return ChildSettings.of_config(topology.definition().component(component).config)


def test_specs_carry_their_settings_in_the_configuration() -> None:
    """The definition stays plain data, so it travels to every scheduler as before."""
    assert settings_of("count") == ChildSettings(("./count",), timeout_s=5)
    assert [each.name for each in WordCount.definition().component("count").outputs] == ["default"]
    assert WordCount.definition().component("count").outputs[0].fields == ("word", "count")


def test_javascript_has_integers_of_53_bits() -> None:
    """The program's name says it; an argument overrides it."""
    assert settings_of("words").integer_bits == 53


def test_a_subclass_sets_arguments_as_attributes_and_the_builder_takes_it() -> None:
    """The script is one argument, whatever it contains."""
    builder = TopologyBuilder("words")
    words = builder.add_spout("words", Words, par=1)
    builder.add_bolt("count", Count, par=1, inputs=[words])
    assert settings_of("count", builder).command == ("python3", "-u", "my count.py")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, r"component 'c': command \(\) names no program"),
        ({"command": "  "}, "names no program"),
        ({"command": "python 'x"}, "No closing quotation"),
        ({"command": ["python", 5]}, "names no program"),
        ({"command": "x", "script": 5}, "script 5 is not a string"),
        ({"command": "x", "timeout": 5}, r"unknown argument 'timeout' \(nearest: 'timeout_s'\)"),
        ({"command": "x", "timeout_s": 0}, "timeout_s 0 is not a number of 0.1 to inf"),
        ({"command": "x", "max_pending": 1.5}, "max_pending 1.5 is not a whole number"),
        ({"command": "x", "framing": "xml"}, "framing 'xml' is unknown"),
        ({"command": "x", "resources": "no_such_package"}, "put the files into a folder 'no_such_package'"),
        ({"command": "x", "resources": "json.decoder"}, "'json.decoder' is not a package"),
        ({"command": "x", "work_folder": 5}, "work_folder 5 is not a string"),
        ({"command": "x", "work_folder": "../src", "resources": "json"}, "or `resources` is given too; give one"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_given(arguments: dict[str, Any], reason: str) -> None:
    """The author's line is in the traceback, and nothing has started."""
    with pytest.raises(TopologyError, match=reason):
        ShellBolt.spec(name="c", **arguments)


def test_resources_are_the_folder_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package travels with the topology, because the spec imports it."""
    (tmp_path / "the_parts").mkdir()
    (tmp_path / "the_parts" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = ShellBolt.spec(name="c", command="x", resources="the_parts", inputs=[WordCount.words], outputs=["a"])
    assert "the_parts" in sys.modules
    assert ChildSettings.of_config(spec.definition().config).folder() == tmp_path / "the_parts"


def test_a_program_of_the_package_runs_in_a_folder_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a package are unpacked without the right to run."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "count").write_text("#!/bin/sh\npwd\n", encoding="utf-8")
    (tmp_path / "src" / "count").chmod(0o600)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "topologies" / "words.py"), raising=False)
    child = ChildProcess(ChildSettings(("./count",), work_folder="../src"))
    try:
        select.select([child.ended], [], [], 60)
        printed = os.read(child.stdout, 10_000)
    finally:
        code = child.reap()
    assert (printed.decode(), code) == (f"{tmp_path / 'src'}\n", 0)


def test_programs_of_this_interpreter_are_found_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """`streamparse_run` is in the environment of the task; a `python3` of the system stays what it was."""
    monkeypatch.setenv("PATH", "/one:/two")
    assert ChildSettings(("x",)).environment()["PATH"] == f"/one:/two:{Path(sys.executable).parent}"
