"""The project of ``sparse quickstart``, loaded by `heron` in a child process."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import TopologyError
from heron_cli.launch.loading.compat_plugin import compat_package
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology


def loaded(path: Path, *argv: str) -> LoadedTopology:
    """Load a file as the commands do."""
    with LoadingTopology(str(path), argv) as loading:
        return loading.result()


def test_the_package_has_src_and_the_topology(project: Path) -> None:
    """Containers on other machines get the same layout, also files that no import names."""
    (project / "src" / "table.csv").write_text("a,b\n")
    path = project / "topologies" / "wordcount.py"
    first, *others = [line for line in path.read_text().splitlines() if line.startswith("from")]
    path.write_text(path.read_text().replace(first, "").replace(others[0], f"{others[0]}\n{first}"))  # sorted imports
    found = loaded(path, "-w", "2")
    assert found.root == project
    assert found.import_paths == ("topologies", "src")
    assert found.files == (
        "src/bolts/__init__.py",
        "src/bolts/wordcount.py",
        "src/spouts/__init__.py",
        "src/spouts/words.py",
        "src/table.csv",
        "topologies/wordcount.py",
    )
    assert found.compat == ("heron_compat_streamparse.served_packages:ServedPackages",)
    assert (found.definition.name, found.definition.config["topology.stmgrs"]) == ("wordcount", 2)
    assert found.definition.component("count_bolt").entry == "bolts.wordcount:WordCountBolt._hosted"


def test_an_error_in_src_has_its_file_and_line(project: Path) -> None:
    """The folder ``src`` is a part of the program."""
    bolt = project / "src" / "bolts" / "wordcount.py"
    bolt.write_text(f"{bolt.read_text()}\n    outputs = nothing\n")
    line = len(bolt.read_text().splitlines())
    with pytest.raises(TopologyError, match=rf"{bolt}:{line}: NameError: name 'nothing' is not defined"):
        loaded(project / "topologies" / "wordcount.py")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from streamparse import Bolt\n", True),
        ("if True:\n    import pystorm.bolt\n", True),
        ("# from streamparse import Bolt\nx = 'import pystorm'\n", False),
        ("from streamparser import x\n", False),
    ],
)
def test_only_a_program_for_streamparse_gets_the_packages(tmp_path: Path, text: str, found: bool) -> None:
    """Other programs do not pay for a search among the installed distributions."""
    path = tmp_path / "any_topology.py"
    path.write_text(text)
    assert (compat_package(path) is not None) == found


def test_a_topology_of_a_project_needs_no_import_of_its_own(project: Path) -> None:
    """It may import its specs from another file."""
    path = project / "topologies" / "other.py"
    path.write_text("from wordcount import WordCount\n")
    assert compat_package(path) == "heron_compat_streamparse.served_packages:ServedPackages"
