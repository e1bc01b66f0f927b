"""Unmodified programs, loaded by `heron` in a child process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import TopologyError
from heron_cli.launch.loading.loaded import LoadingTopology

Load = Callable[..., TopologyDefinition]

PARTS = """
import sys
import heronpy.api.api_constants as constants
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping
from heronpy.api.topology import Topology, TopologyBuilder

class Words(Spout):
    outputs = ['word']
    def next_tuple(self):
        self.emit(['a'])

class Count(Bolt):
    def process(self, tup):
        self.ack(tup)
"""

BUILT = (
    PARTS
    + """
if __name__ == '__main__':
    if len(sys.argv) != 2:
        print('the name is missing')
        sys.exit(1)
    builder = TopologyBuilder(name=sys.argv[1])
    words = builder.add_spout('words', Words, par=2)
    builder.add_bolt('count', Count, par=3, inputs={words: Grouping.fields('word')},
                     config={constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 10})
    builder.set_config({constants.TOPOLOGY_RELIABILITY_MODE: DELIVERY})
    builder.build_and_submit()
"""
)

DERIVED = (
    PARTS
    + """
class Derived(Topology):
    config = {constants.TOPOLOGY_DEBUG: 'true', constants.TOPOLOGY_STMGRS: '2'}
    words = Words.spec(par=1)
    count = Count.spec(par=2, inputs=[words])
"""
)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return the topology that a file submits when it runs with these arguments."""

    def loaded(text: str, argv: Sequence[str] = ()) -> TopologyDefinition:
        path = tmp_path / "old_topology.py"
        path.write_text(text)
        with LoadingTopology(str(path), argv) as loading:
            return loading.result().definition

    return loaded


def test_the_main_block_runs_with_its_arguments(load: Load) -> None:
    """Nearly every program for heronpy has such a block."""
    mode = "constants.TopologyReliabilityMode.ATLEAST_ONCE"
    definition = load(BUILT.replace("DELIVERY", mode), ["old-words"])
    assert (definition.name, definition.config["topology.reliability.mode"]) == ("old-words", "ATLEAST_ONCE")
    assert {each.name: each.parallelism for each in definition.components} == {"words": 2, "count": 3}
    assert definition.component("count").entry == "old_topology:Count"


def test_a_topology_class_needs_no_options_of_a_launcher(load: Load) -> None:
    """heronpy needs HERON_OPTIONS in the environment; here the class is enough."""
    definition = load(DERIVED)
    assert (definition.name, definition.config["topology.debug"], definition.config["topology.stmgrs"]) == (
        "Derived",
        True,
        2,
    )


def test_write_submits_one_of_several_classes(load: Load) -> None:
    """The launcher of heronpy calls it."""
    other = "\nclass Other(Topology):\n    words = Words.spec()\n"
    assert load(f"{DERIVED}{other}\nOther.write()\n").name == "Other"


IMPORTED = """
from heronpy.streamlet.builder import Builder
import heronpy.streamlet.runner
from heronpy.streamlet import generator, windowconfig
from heronpy.connectors.mock.arraylooper import ArrayLooper
from heronpy.dsl.streamlet import Streamlet

class Numbers(generator.Generator):
    def get(self):
        return 1
"""


def test_a_program_may_import_streamlets_without_using_them(load: Load) -> None:
    """Shared modules import both APIs; only a use of Streamlets is an error."""
    assert load(f"{IMPORTED}\n{DERIVED}").name == "Derived"


@pytest.mark.parametrize(
    ("use", "name"),
    [("Streamlet()", "dsl.streamlet.Streamlet"), ("Streamlet.of('a')", "dsl.streamlet.Streamlet.of")],
)
def test_a_use_of_the_former_package_is_refused_with_its_file_and_line(load: Load, use: str, name: str) -> None:
    """The author finds the use without a search."""
    line = len(IMPORTED.splitlines()) + 2
    refusal = f"old_topology.py:{line}: heronpy.{name}: the package was renamed; "
    with pytest.raises(TopologyError, match=f"{re.escape(refusal)}.*\n *{re.escape(use)}$"):
        load(f"{IMPORTED}\n{use}\n{DERIVED}")


def test_a_subclass_of_a_refused_class_is_refused_when_it_is_called(load: Load) -> None:
    """The class statement alone is allowed."""
    with pytest.raises(TopologyError, match=r"old_topology\.Own: the package was renamed"):
        load(f"{IMPORTED}\nclass Own(Streamlet):\n    pass\n\nOwn()\n{DERIVED}")


def test_a_module_that_heronpy_does_not_have_is_not_found() -> None:
    """A fallback with ``except ImportError`` must work."""
    with pytest.raises(ModuleNotFoundError, match=r"heronpy\.connectors\.kafka"):
        importlib.import_module("heronpy.connectors.kafka")
    assert not hasattr(importlib.import_module("heronpy.streamlet.builder"), "Bilder")


def test_every_module_of_streamlets_can_be_found() -> None:
    """Tools look for modules without importing them."""
    importlib.import_module("heronpy.connectors")
    spec = find_spec("heronpy.connectors.textfiles.textfilesgenerator")
    assert spec is not None


def test_effectively_once_is_taken_over(load: Load) -> None:
    """The program gets the guarantee that it asks for."""
    mode = "constants.TopologyReliabilityMode.EFFECTIVELY_ONCE"
    loaded = load(BUILT.replace("DELIVERY", mode), ["old-words"])
    assert loaded.config["topology.reliability.mode"] == "EFFECTIVELY_ONCE"


def test_a_program_that_exits_is_refused(load: Load) -> None:
    """Such programs print their usage and exit when the name is missing."""
    with pytest.raises(TopologyError, match=r"ended with exit code 1 while it was loaded"):
        load(BUILT)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{'mine': object()}", "mine: a value of type object is not JSON"),
        ("{'topology.mine': 1}", "unknown key 'topology.mine'"),
        ("{3: 'x'}", "the key 3 is a int, not a string"),
    ],
)
def test_a_configuration_that_is_not_json_is_refused(load: Load, config: str, message: str) -> None:
    """heronpy pickled such values; definitions are JSON here."""
    with pytest.raises(TopologyError, match=message):
        load(DERIVED.replace("{constants.TOPOLOGY_DEBUG: 'true', constants.TOPOLOGY_STMGRS: '2'}", config))
