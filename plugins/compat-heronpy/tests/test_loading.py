"""Programs as `heron` loads them: unmodified files, run in a child process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import TopologyError
from heron_cli.launch.loaded import LoadingTopology

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
    """What a file submits when it is run with these arguments."""

    def loaded(text: str, argv: Sequence[str] = ()) -> TopologyDefinition:
        path = tmp_path / "old_topology.py"
        path.write_text(text)
        with LoadingTopology(str(path), argv) as loading:
            return loading.result().definition

    return loaded


def test_the_main_block_is_run_with_its_arguments(load: Load) -> None:
    """That is how nearly every program of heronpy is written."""
    mode = "constants.TopologyReliabilityMode.ATLEAST_ONCE"
    definition = load(BUILT.replace("DELIVERY", mode), ["old-words"])
    assert (definition.name, definition.config["topology.reliability.mode"]) == ("old-words", "ATLEAST_ONCE")
    assert {each.name: each.parallelism for each in definition.components} == {"words": 2, "count": 3}
    assert definition.component("count").entry == "old_topology:Count"


def test_a_topology_class_needs_no_options_of_a_launcher(load: Load) -> None:
    """heronpy's raised where HERON_OPTIONS was not set; here the definition of the class is enough."""
    definition = load(DERIVED)
    assert (definition.name, definition.config["topology.debug"], definition.config["topology.stmgrs"]) == (
        "Derived",
        True,
        2,
    )


def test_write_hands_in_one_of_several(load: Load) -> None:
    """The launcher of heronpy called it."""
    other = "\nclass Other(Topology):\n    words = Words.spec()\n"
    assert load(f"{DERIVED}{other}\nOther.write()\n").name == "Other"


@pytest.mark.parametrize(
    "line",
    [
        "from heronpy.streamlet.builder import Builder",
        "import heronpy.streamlet.runner",
        "from heronpy.connectors.mock.arraylooper import ArrayLooper",
        "from heronpy.dsl.streamlet import Streamlet",
    ],
)
def test_streamlets_are_refused_by_one_clear_error(load: Load, line: str) -> None:
    """At the import, whichever name is asked for: half a pipeline helps nobody."""
    with pytest.raises(TopologyError, match=r"import heronpy\.\w+: EFFECTIVELY_ONCE and Streamlets are not supported"):
        load(f"{line}\n{DERIVED}")


def test_effectively_once_is_refused_by_the_same_error(load: Load) -> None:
    """Weaker delivery than was asked for must never pass in silence."""
    mode = "constants.TopologyReliabilityMode.EFFECTIVELY_ONCE"
    with pytest.raises(TopologyError, match=r"reliability\.mode: EFFECTIVELY_ONCE and Streamlets are not supported"):
        load(BUILT.replace("DELIVERY", mode), ["old-words"])


def test_a_program_that_ends_itself_is_told_of(load: Load) -> None:
    """Those programs end with a usage line when the name is missing."""
    with pytest.raises(TopologyError, match=r"ended with exit code 1 while it was loaded"):
        load(BUILT)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{'mine': object()}", "mine: a value of type object is not JSON"),
        ("{'topology.mine': 1}", "unknown key 'topology.mine'"),
        ("{3: 'x'}", "the key 3 is a int, not a string"),
    ],
)
def test_a_configuration_that_cannot_travel_is_refused(load: Load, config: str, said: str) -> None:
    """heronpy pickled such values; a definition is JSON here, and says so before anything starts."""
    with pytest.raises(TopologyError, match=said):
        load(DERIVED.replace("{constants.TOPOLOGY_DEBUG: 'true', constants.TOPOLOGY_STMGRS: '2'}", config))
