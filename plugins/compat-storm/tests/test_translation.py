"""Captured topologies as topologies of Heron."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.api import TopologyBuilder
from heron.api.definition import ComponentDefinition, GroupingKind, TopologyDefinition
from heron.errors import TopologyError
from heron.planner.verify import verify
from heron_compat_storm.translation import SUBMITTED, TOPOLOGY, heron_topology
from heron_runtime_jvm import direct_stream, heron_name

GOLDEN = Path(__file__).parent / "golden"

Translate = Callable[..., TopologyDefinition]


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    """Translate a golden topology with further keys of its configuration."""

    def translated(name: str, **more: object) -> TopologyDefinition:
        shutil.copy(GOLDEN / f"{name}.thrift", tmp_path / TOPOLOGY)
        submitted = json.loads((GOLDEN / "submitted.json").read_bytes())
        submitted["conf"] |= more
        (tmp_path / SUBMITTED).write_text(json.dumps(submitted))
        for jar in ("storm/storm-client.jar", "topology/own.jar"):
            (tmp_path / jar).parent.mkdir(exist_ok=True)
            (tmp_path / jar).touch()
        builder, _ = heron_topology(tmp_path)
        definition = builder.build()
        verify(definition)
        return definition

    return translated


def jvm(component: ComponentDefinition) -> dict[str, object]:
    """What the runtime of Java gets."""
    found = component.config["jvm"]
    assert isinstance(found, dict)
    return found


def test_a_component_in_java_knows_its_place_in_the_captured_topology(translate: Translate) -> None:
    """The package has the jars; each task finds its object in the Thrift document."""
    found = translate("custom")
    assert (found.name, found.config["topology.stmgrs"]) == ("recorded", 2)
    modulo = found.component("modulo")
    assert (modulo.parallelism, modulo.outputs) == (3, ())
    assert jvm(modulo)["storm_topology"] == TOPOLOGY
    assert jvm(modulo)["storm_component"] == "modulo"
    assert jvm(modulo)["class_path"] == ["storm/*", "topology/*"]
    assert jvm(modulo)["storm_config"] == {
        "own.key": 3,
        "topology.fall.back.on.java.serialization": True,
        "topology.max.spout.pending": 200,
        "topology.workers": 2,
    }


def test_a_jar_that_brings_storm_is_the_class_path(translate: Translate, tmp_path: Path) -> None:
    """There are no other jars then."""
    translate("custom")
    (tmp_path / "storm" / "storm-client.jar").unlink()
    builder, _ = heron_topology(tmp_path)
    assert jvm(builder.build().component("plain"))["class_path"] == ["topology/*"]


def test_a_grouping_in_java_becomes_a_direct_stream(translate: Translate) -> None:
    """The JVM of the emitter chooses the tasks; Storm's partial key grouping is Heron's."""
    found = translate("custom")
    fields = {each.name: each.fields for each in found.component("numbers").outputs}
    assert fields == dict.fromkeys(
        ["default", direct_stream("default", "modulo"), direct_stream("default", "everyone")], ("number", "text")
    )
    modulo, partial = found.component("modulo").inputs[0], found.component("partial").inputs[0]
    assert (modulo.stream, modulo.grouping.kind) == (direct_stream("default", "modulo"), GroupingKind.DIRECT)
    assert (partial.stream, partial.grouping.kind) == ("default", GroupingKind.PARTIAL_KEY)
    assert partial.grouping.fields == ("text",)


def test_a_component_in_another_language_runs_without_a_jvm(translate: Translate, tmp_path: Path) -> None:
    """Its scripts were in the jar, and keys of the program reach it."""
    (tmp_path / "resources").mkdir()
    topology = translate("shell")
    java = topology.component("java_shout").config["multilang"]
    assert java["command"] == ["python3", "shout.py"]  # type: ignore[index]  # JSON
    shout = topology.component("shout")
    assert shout.entry == "heron_runtime_multilang.shell_bolt:ShellBolt"
    assert shout.config["multilang"]["command"] == ["python3", "shout.py"]  # type: ignore[index]  # JSON
    assert shout.config["multilang"]["work_folder"] == "resources"  # type: ignore[index]
    assert shout.config["own.key"] == 3


def test_names_that_heron_does_not_have_are_written_otherwise(translate: Translate) -> None:
    """Storm's stateful bolts have a spout whose name begins with a dollar sign."""
    found = translate("stateful")
    spout = found.component(heron_name("$checkpointspout"))
    assert jvm(spout)["storm_component"] == "$checkpointspout"
    assert spout.outputs[0].name == heron_name("$checkpoint")


def test_the_number_of_tasks_has_a_limit(translate: Translate) -> None:
    """As in Storm, by keys for all components, which a component may set for itself."""
    found = translate("custom", **{"topology.max.task.parallelism": 2, "topology.tasks": 5})
    assert {each.parallelism for each in found.components} == {2}
    found = translate("custom", **{"topology.tasks": 5})
    assert {each.parallelism for each in found.components} == {5}


def test_options_of_workers_reach_each_jvm(translate: Translate) -> None:
    """The later option wins, so the usual ones come first."""
    found = translate("custom", **{"topology.worker.childopts": "-Xmx1g"})
    assert jvm(found.component("plain"))["java_options"] == ["-XX:+UseSerialGC", "-Xmx768m", "-Xmx1g"]
    options = {"topology.worker.gc.childopts": "-XX:+UseG1GC", "topology.component.resources.onheap.memory.mb": 256}
    found = translate("custom", **options)
    assert jvm(found.component("plain"))["java_options"] == ["-Xmx768m", "-XX:+UseG1GC", "-Xmx256m"]


def test_keys_without_effect_are_named_with_their_place(translate: Translate, tmp_path: Path) -> None:
    """The command shows them once."""
    translate("custom", **{"topology.priority": 3})
    _, ignored = heron_topology(tmp_path)
    assert ignored == {"topology 'recorded'": ("topology.priority",)}


def test_a_grouping_in_java_needs_an_emitter_in_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in another language has no JVM that could choose tasks."""
    from heron_compat_storm import translation  # noqa: PLC0415  # the module is changed
    from heron_compat_storm.storm_topology import StormComponent, StormInput, StormTopology  # noqa: PLC0415

    program = StormComponent("a", True, ("node", "a.js"), (), (), 1, {})
    bolt = StormComponent("b", False, None, (StormInput("a", "default", None),), (), 1, {})
    topology = StormTopology({"a": program, "b": bolt}, 0)
    monkeypatch.setattr(translation, "decode_storm_topology", lambda *_: topology)
    (tmp_path / TOPOLOGY).touch()
    (tmp_path / SUBMITTED).write_text(json.dumps({"name": "t", "conf": {}, "partial_keys": [], "programs": {}}))
    (tmp_path / "topology").mkdir()
    (tmp_path / "topology" / "own.jar").touch()
    with pytest.raises(TopologyError, match=r"component 'b': input a:default: a custom grouping in Java.*'node'"):
        heron_topology(tmp_path)


def test_the_builder_is_the_one_that_a_program_submits(translate: Translate, tmp_path: Path) -> None:
    """The command takes it from the main block of the written program."""
    translate("custom")
    assert isinstance(heron_topology(tmp_path)[0], TopologyBuilder)
