"""Loading an unpacked package in an instance: classes under their own module, and groupings that are objects."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from heron.errors import PluginError, UsageError
from heron.kernel.author_topology import live_grouping
from heron.kernel.manifest import PackageManifest
from heron.kernel.user_code import load_class, load_package, load_user_code
from heron.spi.compat import CompatPackage

WordsFile = Callable[..., Path]

MANIFEST = PackageManifest(topology="words", module="words_unpacked", files={}, script=True)

SCRIPT = """
from heron.api import ICustomGrouping

class Odd(ICustomGrouping):
    def __init__(self, number):
        self.number = number
    def prepare(self, context, component, stream, target_tasks):
        self.tasks = target_tasks
    def choose_tasks(self, values):
        return self.tasks[:1]

class Word:
    def __init__(self, text):
        self.text = text

if __name__ == "__main__":
    builder = TopologyBuilder("words")
    lines = builder.add_spout("lines", Lines, par=1)
    builder.add_bolt("count", Count, par=2, inputs={lines: Grouping.custom(Odd(7))})
    builder.build_and_submit()
"""


@pytest.fixture(autouse=True)
def interpreter_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the interpreter, which loading a file changes."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield
    for name in ("words_unpacked", "beside_words", "pack_of_words", "pack_of_words.inner"):
        sys.modules.pop(name, None)


def test_a_class_has_one_name_in_every_process(words_file: WordsFile) -> None:
    """Pickles under both names load as the same class."""
    path = words_file(SCRIPT, "words_unpacked.py")
    module = load_package(path.parent, replace(MANIFEST, argv=("--loops", "2"))).module
    word = load_class("words_unpacked:Word")
    assert word is module.Word
    assert pickle.loads(pickle.dumps(word("a"))).text == "a"
    assert pickle.loads(b"c__main__\nWord\n.") is word
    assert sys.argv[1:] == ["--loops", "2"]


def test_the_main_block_does_not_run_in_an_instance(words_file: WordsFile) -> None:
    """The block is for the author's command; only a grouping object needs it."""
    path = words_file("\nSEEN = []\nif __name__ == '__main__':\n    SEEN.append(1)\n", "words_unpacked.py")
    assert load_package(path.parent, MANIFEST).module.SEEN == []


def test_a_grouping_object_is_made_again_in_the_instance(words_file: WordsFile) -> None:
    """Definitions hold no objects, so the instance runs the author's code again."""
    path = words_file(SCRIPT, "words_unpacked.py")
    code = load_user_code(path, ())
    found = live_grouping(code, MANIFEST, "count", "lines", "default")
    assert getattr(found, "number", None) == 7
    assert type(found) is load_class("words_unpacked:Odd")
    assert code.module.__name__ == "words_unpacked"


def test_tracebacks_show_the_authors_own_files(words_file: WordsFile, tmp_path: Path) -> None:
    """The package is deleted after the run; it provides source lines where the author's folder does not exist."""
    rest = "import beside_words\nimport pack_of_words.inner\ndef fail():\n    raise ValueError('here')\n"
    path = words_file(rest, "words_unpacked.py")
    (path.parent / "beside_words.py").write_text("def f():\n    pass\n", encoding="utf-8")
    (path.parent / "pack_of_words").mkdir()
    (path.parent / "pack_of_words" / "__init__.py").write_text("", encoding="utf-8")
    (path.parent / "pack_of_words" / "inner.py").write_text("def f():\n    pass\n", encoding="utf-8")
    origin = tmp_path / "far" / "away"
    module = load_package(path.parent, replace(MANIFEST, origin=str(origin))).module
    assert module.__file__ == str(path)
    assert module.beside_words.f.__code__.co_filename == str(origin / "beside_words.py")
    assert module.pack_of_words.inner.f.__code__.co_filename == str(origin / "pack_of_words" / "inner.py")
    with pytest.raises(ValueError, match="here") as caught:
        module.fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert f'"{origin}/words_unpacked.py"' in shown
    assert "raise ValueError('here')" in shown


def test_the_error_for_a_missing_class_names_the_right_place(words_file: WordsFile) -> None:
    """The class may have existed only while the file was loaded."""
    path = words_file("", "words_unpacked.py")
    load_package(path.parent, MANIFEST)
    with pytest.raises(UsageError, match=r"has no class 'Absent'; define it at the top level"):
        load_class("words_unpacked:Absent")


class Served(CompatPackage):
    """Serves the package `foreign_words`."""

    package = "foreign_words"

    @staticmethod
    def is_used_by(path: Path, imported: AbstractSet[str]) -> bool:
        """Programs that import it."""
        return Served.package in imported

    @staticmethod
    def serve() -> None:
        """Make the package importable."""
        sys.modules["foreign_words"] = ModuleType("foreign_words")

    @staticmethod
    def project_folders(path: Path) -> tuple[Path, ...]:
        """A program has no other folder."""
        return ()


def test_an_instance_serves_foreign_packages_before_it_loads_the_file(words_file: WordsFile) -> None:
    """The command has written into the manifest which plugins the file needs."""
    path = words_file("import foreign_words\n", "words_unpacked.py")
    module = load_package(path.parent, replace(MANIFEST, compat=(f"{__name__}:Served",))).module
    assert module.foreign_words.__name__ == "foreign_words"


def test_a_plugin_that_serves_nothing_is_refused(words_file: WordsFile) -> None:
    """An older plugin may name another class."""
    path = words_file("", "words_unpacked.py")
    with pytest.raises(PluginError, match="compat plugin: builtins:str is not a CompatPackage; upgrade"):
        load_package(path.parent, replace(MANIFEST, compat=("builtins:str",)))
