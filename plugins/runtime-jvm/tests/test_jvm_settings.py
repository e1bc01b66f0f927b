"""What `spec` takes and refuses, and what the first frame makes of it. No Java runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from heron.api import Bolt, Grouping, Spout, Stream, TopologyBuilder, Tuple
from heron.errors import TopologyError
from heron_runtime_jvm import JvmBolt, JvmSpout, direct_stream, heron_name
from heron_runtime_jvm.jvm_protocol import JvmProtocol
from heron_runtime_jvm.jvm_settings import JvmSettings
from heron_runtime_jvm.setup import setup_of

GIVEN: dict[str, Any] = {"java_class": "com.example.Count", "class_path": ["*"]}


class Words(Spout):
    """A Python spout."""

    outputs = ("word",)

    def next_tuple(self) -> None:
        """Never called."""


class Show(Bolt):
    """A Python bolt."""

    def process(self, tup: Tuple) -> None:
        """Never called."""


def settings(spec: object) -> JvmSettings:
    """The settings that travel in the configuration."""
    config = getattr(spec, "custom_config", None)
    assert isinstance(config, Mapping)
    return JvmSettings.of_config(config)


def test_arguments_travel_in_the_configuration() -> None:
    """Beside the component's own configuration."""
    spec = JvmSpout.spec(
        "words", 2, {"topology.debug": True}, arguments=[1, "x", {"a": None}], outputs=["word"], max_pending=5, **GIVEN
    )
    stored = settings(spec)
    assert (stored.java_class, stored.arguments, stored.class_path) == (
        "com.example.Count",
        (1, "x", {"a": None}),
        ("*",),
    )
    assert stored.java_options == ("-XX:+UseSerialGC", "-Xmx768m")
    assert stored.child_settings().max_pending == 5
    assert spec.custom_config is not None
    assert spec.custom_config["topology.debug"] is True
    assert spec.get_out_streamids() == {"default"}


class Count(JvmBolt):
    """A bolt whose class says everything."""

    java_class = "com.example.Count"
    class_path = ("lib/*",)
    timeout_s = 5.0
    outputs = ("word", "count")


def test_a_subclass_may_set_the_arguments() -> None:
    """As with a ShellBolt; what `spec` gets has precedence."""
    stored = settings(Count.spec("count", timeout_s=7))
    assert (stored.java_class, stored.class_path) == ("com.example.Count", ("lib/*",))
    assert stored.child_settings().timeout_s == 7


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"class_path": ["*"]}, "give java_class, such as 'com.example.Count', or storm_topology, a file; one of them"),
        ({**GIVEN, "storm_topology": "t.thrift"}, "one of them"),
        ({"java_class": "a.B"}, "class_path is empty; give the jars of storm-client and of the component"),
        ({**GIVEN, "class_path": "lib/*"}, r"class_path 'lib/\*' is not a list of texts"),
        ({**GIVEN, "java_options": [1]}, r"java_options \[1\] is not a list of texts"),
        ({**GIVEN, "arguments": "x"}, "arguments 'x' is not a list"),
        ({**GIVEN, "arguments": [{1}]}, "arguments is not plain data"),
        ({**GIVEN, "storm_config": {"a": float("nan")}}, "storm_config is not plain data"),
        ({**GIVEN, "storm_config": [1]}, "storm_config is a list; give a dict"),
        ({**GIVEN, "java": ""}, "java '' is not a text of at least one character"),
        ({**GIVEN, "timeout_s": 0}, "timeout_s 0 is not a number of 0.1 to inf"),
        ({**GIVEN, "class_pth": []}, r"unknown argument 'class_pth' \(nearest: 'class_path'\); known: 'arguments', "),
        ({**GIVEN, "command": "java"}, "unknown argument 'command'"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], reason: str) -> None:
    """With the component, when the topology is made."""
    with pytest.raises(TopologyError, match=f"component 'count': .*{reason}"):
        JvmBolt.spec("count", **arguments)


def test_names_of_storm_become_names_of_heron() -> None:
    """Heron has fewer characters for them."""
    assert heron_name("word_count-2") == "word_count-2"
    assert heron_name("$checkpoint") == "-x24-checkpoint"
    assert heron_name("a b/ü𝄞") == "a-x20-b-x2f--xfc--x1d11e-"
    assert direct_stream("$s", "count") == "-x24-s--count"


class _Context:
    """What the setup reads of a context."""

    def __init__(self, builder: TopologyBuilder, name: str) -> None:
        self._topology, self._name = builder.build(), name

    def get_topology(self) -> object:
        return self._topology

    def get_component_id(self) -> str:
        return self._name

    def get_config(self) -> Mapping[str, object]:
        return {**self._topology.config, **self._topology.component(self._name).config}

    def get_task_id(self) -> int:
        return 7

    def get_component_tasks(self, name: str) -> list[int]:
        return [len(name)]


def setup(name: str, topology: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The setup of a component of a topology with all combinations of readers."""
    builder = TopologyBuilder("words")
    builder.set_config(topology or {})
    words = builder.add_spout("words", Words, par=1)
    outputs: list[str | Stream] = ["word", Stream(["word", "place"], name="java")]
    split = JvmBolt.spec("split", [words], config={"topology.tick.tuple.freq.secs": 5}, outputs=outputs, **GIVEN)
    count = JvmBolt.spec("count", {split: Grouping.ALL, split["java"]: Grouping.fields("word")}, **GIVEN)
    builder.add_spec(split, count)
    builder.add_bolt("show", Show, par=1, inputs=[split])
    context: Any = _Context(builder, name)
    stored = JvmSettings.of_config(context.get_config())
    return setup_of(stored, context, is_spout=False, tracks=True)


def test_the_setup_says_where_each_stream_leads() -> None:
    """Java objects travel where only JVMs read."""
    sent = setup("split")
    assert sent["outputs"] == [["default", ["word"], "component 'show'"], ["java", ["word", "place"], None]]
    assert (sent["task"], sent["storm_component"], sent["tracks"]) == (7, "split", True)
    assert sent["config"]["topology.tick.tuple.freq.secs"] == 5
    assert "jvm" not in sent["config"]


def test_another_serializer_carries_plain_data_alone() -> None:
    """Values of Java need pickle, also between two JVMs."""
    assert setup("split", {"topology.serializer": "plain"})["outputs"][1][2] == "the serializer 'plain'"


def test_each_start_of_a_child_gets_the_setup_of_then() -> None:
    """An update may have given the topology other tasks."""
    numbers = iter((1, 2))
    context: Any = None
    protocol = JvmProtocol(lambda: {"tasks": next(numbers)}, 1000, context)
    sent = []
    for _ in range(2):
        decoder, greeting = protocol.begin()
        [[_, given]] = decoder.feed(greeting)
        assert isinstance(given, dict)
        sent.append((given["tasks"], given["first_root"] >> 40, Path(given["pid_folder"]).is_dir()))
        protocol.ended()
        assert not Path(given["pid_folder"]).exists()
    assert sent == [(1, 1, True), (2, 2, True)]


def test_the_setup_has_the_topology() -> None:
    """The context of the component is made of it."""
    found = {each["name"]: each for each in setup("count")["components"]}
    assert found["words"] == {
        "name": "words",
        "spout": True,
        "tasks": [5],
        "streams": {"default": ["word"]},
        "inputs": [],
    }
    assert found["count"]["inputs"] == [["split", "default", "all", []], ["split", "java", "fields", ["word"]]]
