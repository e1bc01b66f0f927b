"""What is refused when a topology class is made: wrong connections, and components that an instance cannot run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.api.capture import TopologySource
from heron.errors import HeronError, UsageError

LoadProject = Callable[..., TopologySource]

PARTS = """
import sys
from streamparse import *
from streamparse import Bolt, Grouping, JavaBolt, JavaSpout, ShellBolt, ShellSpout, Spout, Stream, Topology
from streamparse import BatchingBolt, TicklessBatchingBolt
from streamparse.thrift import GlobalStreamId

class Words(Spout):
    outputs = ['word', Stream(fields=['n'], name='count'), Stream(fields=['d'], name='direct', direct=True)]

class Count(Bolt):
    outputs = ['word', 'count']
"""


@pytest.fixture
def refusal(tmp_path: Path, load: LoadProject, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Load PARTS and a text; return the error. Nothing installed runs child processes."""
    monkeypatch.setitem(sys.modules, "heron_runtime_multilang", None)

    def refused(text: str) -> str:
        path = tmp_path / "refused_topology.py"
        path.write_text(PARTS + text)
        with pytest.raises(HeronError) as caught:
            load(path).definition()
        return str(caught.value)

    return refused


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("words = Words.spec(); count = Count.spec()", "component 'count': a bolt needs at least one input"),
        ("count = Count.spec(inputs=[GlobalStreamId('words', 'default')])", "input words:default: no such component"),
        (
            "words = Words.spec(); count = Count.spec(inputs=[words['cout']])",
            "no output stream 'cout' (nearest: 'count')",
        ),
        (
            "words = Words.spec(); count = Count.spec(inputs=[GlobalStreamId('words', 'cout')])",
            "component 'count': input words:cout: no such stream (nearest: 'count')",
        ),
        (
            "words = Words.spec(); count = Count.spec(inputs={words: Grouping.fields('wrd')})",
            "component 'count': input words:default: no field 'wrd' (nearest: 'word'); known: 'word'",
        ),
        (
            "words = Words.spec(name='a'); count = Count.spec(name='a', inputs=[words])",
            "two components of the name 'a'",
        ),
        ("words = Words()", "words is a component, not its spec; write words = CLASS.spec(...)"),
        ("words = Words.spec(); config = 3", "config 3 is not a dict"),
        ("words = Words.spec(par=0)", "par: 0 is not a number of tasks"),
        ("words = Words.spec(par={'prod': 'x'})", "par of 'prod': 'x' is not a number of tasks"),
        ("words = Words.spec(config=3)", "config 3 is not a dict"),
        ("words = Words.spec(); count = Count.spec(inputs={words: 'shuffle'})", "'shuffle' is not a grouping"),
        (
            "words = Words.spec(); count = Count.spec(inputs={'words': Grouping.ALL})",
            "is neither a spec nor a GlobalStreamId",
        ),
        ("words = Words.spec(); count = Count.spec(inputs='words')", "inputs 'words' is not a list, dict or spec"),
        ("words = Words.spec(); count = Count.spec(inputs={words['direct']: Grouping.ALL})", "use Grouping.DIRECT"),
        ("pass", "there is no spout"),
        ("words = Words.spec(); x = Component.spec()", "it is neither a bolt nor a spout"),
        ("words = Words.spec(); Grouping.custom_object('a.B', [])", "the Java class 'a.B' is not supported"),
    ],
)
def test_a_wrong_topology_is_refused_when_its_class_is_made(
    refusal: Callable[[str], str], body: str, message: str
) -> None:
    """The author sees component, value and what is there."""
    assert message in refusal(f"from streamparse.component import Component\nclass T(Topology):\n    {body}\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "words = JavaSpout.spec(full_class_name='a.B', args_list=[], outputs=['word'])",
            "component 'words': it is the class a.B in Java, which needs a JVM; replace it by a component in Python",
        ),
        (
            "words = Words.spec(); j = JavaBolt.spec(serialized_java=b'x', inputs=[words])",
            "component 'j': it is a serialised object in Java, which needs a JVM",
        ),
        (
            "words = Words.spec(); s = ShellBolt.spec(command='node', script='x.js', inputs=[words])",
            "component 's': it is the command 'node', which needs a child process with Storm's multilang protocol",
        ),
        (
            "words = ShellSpout.spec(command='node', script='x.js', outputs=['a'])",
            "component 'words': it is the command",
        ),
        ("words = ShellSpout.spec(command='', script='x.js', outputs=['a'])", "command '' is not a program"),
    ],
)
def test_a_foreign_component_is_refused_by_name(refusal: Callable[[str], str], body: str, message: str) -> None:
    """The name is that of the attribute, which is known when the class is made."""
    assert message in refusal(f"class T(Topology):\n    {body}\n")


@pytest.mark.parametrize(
    ("method", "line", "name"),
    [
        ("def run(self):\n        pass", 0, "run"),
        ("def process(self, tup):\n        return self.read_message()", 1, "read_message"),
        ("def process(self, tup):\n        return super().read_tuple()", 1, "read_tuple"),
        ("def process(self, tup):\n        self.serializer.flush()", 1, "serializer"),
        ("def initialize(self, conf, ctx):\n        self.serializer = None", 1, "serializer"),
        ("def process(self, tup):\n        sys.stdin.read()", 1, "sys.stdin"),
        ("def __init__(self):\n        super().__init__(output_stream=sys.stderr)", 1, "output_stream"),
    ],
)
def test_a_component_with_its_own_protocol_is_refused_with_file_and_line(
    refusal: Callable[[str], str], method: str, line: int, name: str
) -> None:
    """Such a class reads messages of Storm, which an instance does not send."""
    found = refusal(
        f"class Own(Count):\n    outputs = []\n    {method}\n"
        "class Derived(Own):\n    pass\n"
        "class T(Topology):\n    words = Words.spec()\n    own = Derived.spec(inputs=[words])\n"
    )
    place = len(PARTS.splitlines()) + 3 + line
    assert re.search(
        rf"component 'own': \S+refused_topology\.py:{place}: Own uses {re.escape(name)}, which needs", found
    ), found


def test_a_component_may_read_the_attribute_serializer(tmp_path: Path, load: LoadProject) -> None:
    """Only what replaces it, or calls it, speaks the protocol."""
    path = tmp_path / "reading_topology.py"
    path.write_text(
        f"""{PARTS}
class Reads(Count):
    def process(self, tup):
        self.logger.info("with %s", self.serializer)
class T(Topology):
    words = Words.spec()
    reads = Reads.spec(inputs=[words])
"""
    )
    source = load(path)
    assert source.definition().component("reads").entry == "reading_topology:Reads._hosted"
    assert sys.modules["reading_topology"].Reads().serializer == "json"


def test_a_tickless_bolt_with_ticks_of_its_own_is_refused(refusal: Callable[[str], str]) -> None:
    """Its period is made of ticks here."""
    own = "class Own(TicklessBatchingBolt):\n    def process_tick(self, tick_tup):\n        pass\n"
    found = refusal(f"{own}class T(Topology):\n    words = Words.spec()\n    own = Own.spec(inputs=[words])\n")
    assert "component 'own': refused_topology.Own is a TicklessBatchingBolt that defines process_tick" in found


@pytest.mark.parametrize("call", ["write(None)", "read(None)", "to_flux_dict('x')"])
def test_files_for_storm_are_refused(refusal: Callable[[str], str], call: str) -> None:
    """Heron has no Thrift."""
    assert "makes files for Storm" in refusal(f"class T(Topology):\n    words = Words.spec()\nT.{call}\n")


def test_inputs_in_every_form(tmp_path: Path, load: LoadProject) -> None:
    """A list has shuffle, or direct for a direct stream; a dict names its groupings; a spec stands alone."""
    path = tmp_path / "inputs_topology.py"
    path.write_text(
        f"""{PARTS}
class T(Topology):
    words = Words.spec(name='named')
    one = Count.spec(inputs=words)
    many = Count.spec(inputs=[words, words['count'], words['direct']])
    keyed = Count.spec(inputs={{words: Grouping.fields(['word']), GlobalStreamId('one', 'default'): Grouping.GLOBAL,
                               many: Grouping.LOCAL_OR_SHUFFLE, words['count']: Grouping.ALL}})
"""
    )
    definition = load(path).definition()
    found = {
        each.name: [(one.component, one.stream, one.grouping.kind.value) for one in each.inputs]
        for each in definition.components
    }
    assert found["one"] == [("named", "default", "shuffle")]
    assert found["many"] == [
        ("named", "default", "shuffle"),
        ("named", "count", "shuffle"),
        ("named", "direct", "direct"),
    ]
    assert [kind for _, _, kind in found["keyed"]] == ["fields", "lowest", "local_or_shuffle", "all"]
    assert definition.component("keyed").entry == "inputs_topology:Count._hosted"


def test_own_streams_are_refused_at_run_time_too() -> None:
    """A class without source cannot be examined."""
    from heron_compat_streamparse.components.bolt import Bolt  # noqa: PLC0415  # as a program would

    with pytest.raises(UsageError, match="an instance gives no streams"):
        Bolt(input_stream=object())


def test_a_child_starts_in_the_folder_of_the_sources(project: Path, load: LoadProject) -> None:
    """A script is one word, whatever characters it has, and an empty one is none."""
    settings = pytest.importorskip("heron_runtime_multilang.child_settings").ChildSettings
    path = project / "topologies" / "shell_topology.py"
    path.write_text(
        f"""{PARTS}
class T(Topology):
    words = ShellSpout.spec(command='./count', script='', outputs=['a'])
    node = ShellBolt.spec(command='node', script='a b.js', inputs=[words])
"""
    )
    definition = load(path).definition()
    words, node = (settings.of_config(definition.component(name).config) for name in ("words", "node"))
    assert (words.command, words.folder()) == (("./count",), project / "src")
    assert (node.command, node.integer_bits) == (("node", "a b.js"), 53)
