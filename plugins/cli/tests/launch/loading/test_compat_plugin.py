"""Which compat plugin a program gets: by its suffix, or by what its file imports."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from heron.errors import TopologyError, UsageError
from heron.spi.compat import CompatFormat, CompatPackage
from heron_cli.catalog import compat_entries
from heron_cli.catalog.compat_entries import compat_entries as installed_entries
from heron_cli.launch.loading import loader
from heron_cli.launch.loading.compat_plugin import compat_format, compat_package
from heron_cli.launch.loading.load_failure import load_failure
from heron_cli.launch.loading.loaded import WrittenFolder

HERE = __name__


class Foreign(CompatPackage):
    """Serves the package ``foreign``."""

    package: ClassVar[str] = "foreign"

    @staticmethod
    def is_used_by(path: Path, imported: AbstractSet[str]) -> bool:
        """Programs that import it, and one that has another sign."""
        return "foreign" in imported or path.with_suffix(".sign").exists()

    @staticmethod
    def serve() -> None:
        """Nothing is missing."""

    @staticmethod
    def project_folders(path: Path) -> tuple[Path, ...]:
        """It has no other folder."""
        return ()


class Lines(CompatFormat):
    """Reads files of words."""

    package: ClassVar[str] = "lines"
    suffix: ClassVar[str] = ".lines"

    @staticmethod
    def write_program(path: Path, name: str | None, arguments: Sequence[str], folder: Path) -> Path:
        """Write a topology that emits the lines."""
        if not (lines := path.read_text().splitlines()):
            msg = f"{path}: has no line; write one"
            raise TopologyError(msg)
        (folder / "lines.txt").write_text("\n".join(lines))
        program = folder / "lines_topology.py"
        program.write_text(PROGRAM.format(name=name or arguments[0]))
        return program


PROGRAM = """
from heron.api import Spout, Topology

class Emit(Spout):
    outputs = ["line"]

    def next_tuple(self):
        self.end()

class {name}(Topology):
    emit = Emit.spec()
"""


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The installed plugins: a broken one, one that installs its package, and those of this file."""
    entries = {"a": "no_such_module:Class", "b": "builtins:str", "c": f"{HERE}:Foreign", "d": f"{HERE}:Lines"}
    monkeypatch.setattr(compat_entries, "compat_entries", lambda: entries)
    return entries


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The file of a program."""
    return tmp_path / "words.py"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from foreign.api import Bolt\n", True),
        ("if True:\n    import foreign\n", True),
        ("import beside\n", True),
        ("import os, foreign\n", True),
        ('"""Takes words\nfrom foreign sources."""\n', False),
        ("from .foreign import x\n", False),
        ("import foreign as\n", False),
        ("# from foreign import Bolt\nx = 'import foreign'\n", False),
        ("import foreigner\n", False),
    ],
)
def test_a_plugin_serves_the_programs_that_import_its_package(program: Path, text: str, found: bool) -> None:
    """The topology may import its components first, from a module beside it."""
    program.write_text(text)
    program.with_name("beside.py").write_text("import words\nimport foreign\n")
    assert compat_package(program) == (f"{HERE}:Foreign" if found else None)


def test_a_program_of_python_and_heron_pays_for_no_search(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of the installed distributions takes long to read."""
    monkeypatch.setattr(compat_entries, "compat_entries", lambda: pytest.fail("searched"))
    program.with_suffix(".sign").touch()
    program.write_text("import os\nfrom heron.api import Bolt\nimport heron_streamlet\nimport beside\n")
    program.with_name("beside.py").write_text("import json\n")
    assert compat_package(program) is None
    assert compat_format(program) is None


def test_a_plugin_may_know_its_programs_by_another_sign(program: Path) -> None:
    """A program may import its components from a folder that only the plugin knows."""
    program.with_suffix(".sign").touch()
    program.write_text("from parts.of.a.project import Spout\n")
    assert compat_package(program) == f"{HERE}:Foreign"


def test_a_program_in_another_format_becomes_a_python_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files that the plugin writes travel with the topology."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setitem(sys.modules, "lines_topology", ModuleType("lines_topology"))
    path, folder = tmp_path / "words.LINES", tmp_path / "written"
    folder.mkdir()
    path.write_text("a\nb\n")
    report = loader._report(path, None, ["Words"], str(folder))
    assert (report.error, report.module, report.root) == ("", "lines_topology", str(folder))
    assert report.files == ("lines.txt", "lines_topology.py")
    path.write_text("")
    assert loader._report(path, None, ["Words"], str(folder)).error == f"{path}: has no line; write one"


def test_a_format_that_no_plugin_reads_is_refused(tmp_path: Path, plugins: dict[str, str]) -> None:
    """The remedy is another plugin."""
    path = tmp_path / "words.lines"
    path.write_text("a")
    del plugins["d"]
    error = loader._report(path, None, [], "").error
    assert error.startswith(f"{path}: the file's name is not that of a module")
    assert error.endswith("or install a compat plugin that reads .lines files")


def test_a_missing_package_may_be_served_by_a_plugin(program: Path) -> None:
    """The command knows only the plugins that are installed."""
    error = load_failure(program, ModuleNotFoundError("No module named 'a.b'", name="a.b")).error
    assert error.endswith("; correct the file, or install a, or heron-compat-a if there is such a plugin")
    assert load_failure(program, UsageError("refused")).error == "refused"


def test_the_installed_plugins_are_those_of_the_metadata() -> None:
    """The fast search reads the same files."""
    points = importlib.metadata.entry_points(group="heron.compat")
    assert installed_entries() == {each.name: each.value for each in points}


def test_the_folder_of_a_killed_command_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may have megabytes of jars."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = WrittenFolder()
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = Path(own.path.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    left.mkdir()
    other = WrittenFolder()
    assert sorted(map(str, tmp_path.iterdir())) == sorted([own.path, other.path])
    del own, other
    assert [*tmp_path.iterdir()] == []
