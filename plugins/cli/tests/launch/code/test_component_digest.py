"""Which component has other code: what its class leads to counts, wherever it is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.api.definition import GroupingDefinition, GroupingKind, TopologyDefinition
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import hash_files
from heron_cli.launch.code.component_digest import component_digests
from heron_testing.builders import bolt, spout, stream, subscription, topology

PROGRAM = '''"""A program."""
from heron.api import Bolt, Spout
from parts import limits
from parts.names import name_of

STEP = 1


class Base(Bolt):
    def process(self, tup):
        pass


class Word(Spout):
    def next_tuple(self):
        self.emit([name_of(STEP)])


class Count(Base):
    def process(self, tup):
        return limits.LIMIT


class Place:
    pass


builder = TopologyBuilder("wc")
builder.add_spout("word", Word)
if __name__ == "__main__":
    main(Word, Count)
'''
FILES = {
    "wc.py": PROGRAM,
    "parts/__init__.py": "",
    "parts/limits.py": "LIMIT = 3\n",
    "parts/names.py": "from . import limits\n\n\ndef name_of(step):\n    return str(step)\n",
}
PLACED = GroupingDefinition(GroupingKind.CUSTOM, entry="wc:Place")
TOPOLOGY = topology(
    spout("word", stream("word"), entry="wc:Word"),
    bolt("count", subscription("word"), entry="wc:Count"),
    name="wc",
)


def digests(folder: Path, files: dict[str, str], definition: TopologyDefinition = TOPOLOGY) -> dict[str, str]:
    """The digests of a program with these files, in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    manifest = PackageManifest("wc", "wc", hash_files(folder, list(files)))
    return component_digests(folder, manifest, definition)


@pytest.mark.parametrize(
    ("file", "before", "after", "changed"),
    [
        ("wc.py", "    def next_tuple(self):\n", "    def next_tuple(self):\n        # more\n\n", set()),
        ("wc.py", 'builder.add_spout("word", Word)\n', "", set()),
        ("wc.py", "main(Word, Count)", "main(Count)", set()),
        ("wc.py", "STEP = 1", "STEP = 2", {"word"}),
        ("wc.py", "        pass\n", "        self.ack(tup)\n", {"count"}),
        ("wc.py", "return limits.LIMIT", "return limits.LIMIT + 1", {"count"}),
        ("parts/limits.py", "3", "4", {"count"}),
        ("parts/names.py", "str(step)", "repr(step)", {"word"}),
        ("parts/names.py", "from . import limits\n", "from . import limits\nprint('loaded')\n", {"word"}),
    ],
)
def test_a_change_belongs_to_the_components_that_lead_to_it(
    tmp_path: Path, file: str, before: str, after: str, changed: set[str]
) -> None:
    """A module of which no name is used counts for nobody."""
    assert FILES[file].count(before) == 1
    old = digests(tmp_path / "old", FILES)
    new = digests(tmp_path / "new", FILES | {file: FILES[file].replace(before, after)})
    assert {name for name in old if old[name] != new[name]} == changed


def test_other_files_belong_to_each_component(tmp_path: Path) -> None:
    """Nobody can see who reads a table of the program."""
    old = digests(tmp_path / "old", FILES | {"parts/table.csv": "1"})
    new = digests(tmp_path / "new", FILES | {"parts/table.csv": "2"})
    assert all(old[name] != new[name] for name in old)


def test_a_class_of_an_installed_module_stands_for_all_code(tmp_path: Path) -> None:
    """A pipeline names its functions in the configuration of such classes."""
    definition = topology(
        spout("word", stream("word"), entry="heron_streamlet.topology.source_spout:SourceSpout"), name="wc"
    )
    old = digests(tmp_path / "old", FILES, definition)
    new = digests(tmp_path / "new", FILES | {"wc.py": PROGRAM.replace("STEP = 1", "STEP = 2")}, definition)
    assert old != new


def test_a_custom_grouping_belongs_to_the_component_that_emits(tmp_path: Path) -> None:
    """The emitting task places the tuples."""
    definition = topology(
        spout("word", stream("word"), entry="wc:Word"),
        bolt("count", subscription("word", PLACED), entry="wc:Count"),
        name="wc",
    )
    old = digests(tmp_path / "old", FILES, definition)
    new = digests(
        tmp_path / "new",
        FILES | {"wc.py": PROGRAM.replace("class Place:\n    pass", "class Place:\n    x = 1")},
        definition,
    )
    assert {name for name in old if old[name] != new[name]} == {"word"}
