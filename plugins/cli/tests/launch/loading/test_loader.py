"""Loading an author's file in a child process: the choice of the topology, and the error for each mistake."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from heron.errors import UsageError
from heron.kernel.manifest import read_manifest
from heron.kernel.package import pack, unpack
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology, split_target
from heron_cli.launch.loading.stored_program import StoredProgram
from heron_cli.launch.submission import manifest_of
from heron_cli.main import heron

WordsFile = Callable[..., Path]

BUILD = """
def build(name):
    builder = TopologyBuilder(name)
    lines = builder.add_spout("lines", Lines, par=1)
    builder.add_bolt("count", Count, par=2, inputs={lines: Grouping.fields("line")})
    return builder
"""

CLASS = """
class Words(Topology):
    lines = Lines.spec(par=1)
    count = Count.spec(par=1, inputs=[lines])
"""


def load(target: Path | str, *argv: str) -> LoadedTopology:
    with LoadingTopology(str(target), argv) as loading:
        return loading.result()


def test_a_topology_class_is_found_by_itself(words_file: WordsFile) -> None:
    """The shortest file needs no call."""
    loaded = load(words_file(CLASS))
    assert loaded.definition.name == "Words"
    assert [each.entry for each in loaded.definition.components] == ["words:Lines", "words:Count"]
    assert not loaded.script


def test_the_submission_of_a_main_block_is_captured(words_file: WordsFile) -> None:
    """heronpy programs submit from their main block."""
    path = words_file(BUILD + '\nif __name__ == "__main__":\n    build("words").build_and_submit()\n')
    loaded = load(path)
    assert loaded.definition.name == "words"
    assert loaded.script


def test_a_main_block_does_not_run_when_a_class_is_the_topology(words_file: WordsFile) -> None:
    """The block may test or print something else."""
    path = words_file(CLASS + '\nif __name__ == "__main__":\n    raise RuntimeError("not wanted")\n')
    assert not load(path).script


def test_a_submission_at_module_level_is_captured(words_file: WordsFile) -> None:
    """A script needs no main block."""
    assert load(words_file(BUILD + '\nbuild("plain").build_and_submit()\n')).definition.name == "plain"


def test_the_only_builder_needs_no_submission(words_file: WordsFile) -> None:
    """An author may forget to submit the only builder."""
    assert load(words_file(BUILD + '\ntopology = build("only")\n')).definition.name == "only"


@pytest.mark.parametrize(
    ("name", "topology"), [("first", "one"), ("second", "two"), ("made", "three"), ("Words", "Words")]
)
def test_a_name_chooses_builder_function_or_class(words_file: WordsFile, name: str, topology: str) -> None:
    """With FILE:NAME, one file can hold several topologies."""
    path = words_file(
        BUILD + 'first = build("one")\nsecond = build("two")\ndef made():\n    return build("three")\n' + CLASS
    )
    assert load(f"{path}:{name}").definition.name == topology


def test_several_without_a_name_are_listed(words_file: WordsFile) -> None:
    """A guess could run the wrong topology."""
    path = words_file(CLASS + CLASS.replace("Words", "Other"))
    with pytest.raises(UsageError, match=r"has 2 topologies, 'Other', 'Words'; choose one: words.py:Other"):
        load(path)


def test_an_unknown_name_is_answered_with_the_nearest(words_file: WordsFile) -> None:
    """Typing errors are the most frequent reason."""
    with pytest.raises(UsageError, match=r"no topology 'Word' \(nearest: 'Words'\); there are: 'Words'"):
        load(f"{words_file(CLASS)}:Word")


def test_the_error_for_a_file_without_a_topology_names_the_ways_to_write_one(words_file: WordsFile) -> None:
    """The author needs the remedy, not only the fact."""
    with pytest.raises(UsageError, match=r"has no topology; define a Topology class"):
        load(words_file(""))


def line_of(path: Path, source: str) -> int:
    return path.read_text(encoding="utf-8").splitlines().index(source) + 1


def refusal(path: Path, *, verbose: bool = False) -> str:
    with LoadingTopology(str(path), (), verbose=verbose) as loading, pytest.raises(UsageError) as caught:
        loading.result()
    return str(caught.value)


def test_an_exception_is_shown_with_the_authors_line(words_file: WordsFile) -> None:
    """The author looks for file, line and source, not for Heron's frames."""
    path = words_file("\ndef f():\n    return 1 / 0\nf()\n")
    line = line_of(path, "    return 1 / 0")
    assert refusal(path) == (
        f"{path}:{line}: ZeroDivisionError: division by zero; correct the file, it does not load\n    return 1 / 0"
    )


def test_an_exception_of_a_library_is_shown_with_both_places(words_file: WordsFile) -> None:
    """The author's line called the library; the raising line explains the error."""
    path = words_file("\nimport json\njson.loads('[')\n")
    first, source, raised = refusal(path).split("\n")
    line = line_of(path, "json.loads('[')")
    assert first.startswith(f"{path}:{line}: JSONDecodeError: Expecting value: line 1 column 2 (char 1); correct the")
    assert source == "    json.loads('[')"
    assert re.fullmatch(r"  raised in /.*/json/decoder\.py:\d+, raw_decode", raised)


def test_an_exception_in_an_imported_file_names_that_file(words_file: WordsFile) -> None:
    """The innermost line of the program is the one to correct."""
    path = words_file("\nimport beside\n")
    beside = path.parent / "beside.py"
    beside.write_text("x = {}\nx['key']\n", encoding="utf-8")
    assert refusal(path).startswith(f"{beside}:2: KeyError: 'key'; correct the file, it does not load\n    x['key']")


def test_a_refusal_by_heron_is_shown_with_the_authors_line(words_file: WordsFile) -> None:
    """The message names component and value, and the line says which call it was."""
    path = words_file("\nbuilder = TopologyBuilder('words')\nbuilder.add_spout('lines', Lines, par=0)\n")
    line = line_of(path, "builder.add_spout('lines', Lines, par=0)")
    assert refusal(path) == (
        f"{path}:{line}: component 'lines': par is 0; give the number of tasks, an int of at least 1, at most 10000\n"
        "    builder.add_spout('lines', Lines, par=0)"
    )


def test_verbose_shows_the_whole_traceback_of_the_program(words_file: WordsFile) -> None:
    """It begins at the author's file; the frames of the loader say nothing."""
    path = words_file("\ndef f():\n    return 1 / 0\nf()\n")
    text, trace = refusal(path, verbose=True).split("\n\n")
    assert text == refusal(path)
    begin, first, *_ = trace.splitlines()
    assert begin == "Traceback (most recent call last):"
    assert first == f'  File "{path}", line {line_of(path, "f()")}, in <module>'
    assert trace.endswith("ZeroDivisionError: division by zero")
    assert "heron_cli" not in trace


def test_verbose_adds_nothing_to_an_error_about_the_whole_file(words_file: WordsFile) -> None:
    """No line of the file is at fault."""
    path = words_file("")
    assert refusal(path, verbose=True) == refusal(path)


def test_a_syntax_error_names_its_line(words_file: WordsFile) -> None:
    """The compiler reports the line although nothing ran."""
    shown = refusal(words_file("\nlet x = 1\n"))
    assert re.search(r"words\.py:\d+: SyntaxError: invalid syntax; correct the file\n    let x = 1$", shown)


@pytest.mark.parametrize("command", [["plan"], ["run"], ["submit", "local"]])
def test_each_command_that_loads_a_file_has_verbose(command: list[str], words_file: WordsFile) -> None:
    """Only the traceback shows how the program came to the line."""
    path = words_file("\ndef f():\n    return 1 / 0\nf()\n")
    result = CliRunner().invoke(heron, [*command, str(path), "--verbose"])
    assert result.exit_code == 2
    assert "ZeroDivisionError: division by zero; correct the file" in result.stderr
    assert "Traceback (most recent call last):" in result.stderr


def test_a_missing_module_is_named(words_file: WordsFile) -> None:
    """A missing distribution is the most frequent reason."""
    with pytest.raises(UsageError, match=r"words\.py:\d+: ModuleNotFoundError: No module named 'nowhere_else'"):
        load(words_file("\nimport nowhere_else\n"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys\nsys.exit(3)", ": ended with exit code 3"),
        ("raise SystemExit('no text')", "exit code 1 while it was loaded: no text"),
        ("import os\nos._exit(4)", "its process ended by exit code 4"),
        ("import os\nos.abort()", "its process ended by signal SIGABRT"),
    ],
)
def test_a_file_that_ends_early_is_refused(words_file: WordsFile, code: str, message: str) -> None:
    """The file runs in a separate process, so even a crash gives a clear error."""
    with pytest.raises(UsageError, match=re.escape(message)):
        load(words_file(f"\n{code}\n"))


def test_arguments_and_output_are_the_authors_own(words_file: WordsFile, capfd: pytest.CaptureFixture[str]) -> None:
    """argparse at module level reads sys.argv, and prints reach the terminal."""
    path = words_file(CLASS + "import sys\nprint('loaded with', sys.argv[1:])\nprint('warned', file=sys.stderr)\n")
    assert load(path, "--loops", "3").argv == ("--loops", "3")
    out, error = capfd.readouterr()
    assert out == "loaded with ['--loops', '3']\n"
    assert error == "warned\n"


def test_a_class_inside_the_main_block_is_refused(words_file: WordsFile) -> None:
    """No instance could import it, so the command refuses it at once."""
    path = words_file(
        """
        if __name__ == "__main__":
            class Inner(Count):
                pass
            builder = TopologyBuilder("words")
            lines = builder.add_spout("lines", Lines, par=1)
            builder.add_bolt("count", Inner, par=1, inputs=[lines])
            del Inner
            builder.build_and_submit()
        """
    )
    with pytest.raises(UsageError, match=r"component 'count'.*no class 'Inner'; define it at the top level"):
        load(path)


def test_a_load_can_be_cancelled_and_leaves_no_process(words_file: WordsFile) -> None:
    """Ctrl-C must end the child of a file that hangs."""
    loading = LoadingTopology(str(words_file("\nimport threading\nthreading.Event().wait()\n")), ())
    with loading, pytest.raises(KeyboardInterrupt):
        loading.result(cancelled=lambda: True)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("json.py", "would hide the module 'json'"),
        ("heron.py", "would hide the module 'heron'"),
        ("word-count.py", "is not that of a module"),
        ("word.count.py", "is not that of a module"),
        ("words.txt", "is not that of a module"),
    ],
)
def test_a_file_name_that_cannot_name_a_module_is_refused(words_file: WordsFile, name: str, reason: str) -> None:
    """Every process imports the file under its own name."""
    with pytest.raises(UsageError, match=rf"{re.escape(name)}: the file's name {reason}.*; rename it"):
        load(words_file(CLASS, name))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """The command checks this before it starts a child."""
    with pytest.raises(UsageError, match="no such file"):
        split_target(str(tmp_path / "absent.py"))
    with pytest.raises(UsageError, match="is a folder"):
        split_target(str(tmp_path))


def test_the_program_is_the_file_and_its_imports_from_its_folder(words_file: WordsFile) -> None:
    """It includes siblings, whole packages with data, and imports inside functions, but nothing installed."""
    path = words_file(CLASS + "import beside\nimport pack.inner\nimport msgspec\ndef later():\n    import lazy\n")
    folder = path.parent
    (folder / "beside.py").write_text("import heron.api\n", encoding="utf-8")
    (folder / "lazy.py").write_text("import lazier\n", encoding="utf-8")
    (folder / "lazier.py").write_text("", encoding="utf-8")
    (folder / "unused.py").write_text("", encoding="utf-8")
    (folder / "pack" / "deep").mkdir(parents=True)
    for name in ("__init__.py", "inner.py", "stop_words.txt", "deep/other.py", ".secret"):
        (folder / "pack" / name).write_text("", encoding="utf-8")
    assert load(path).files == (
        "beside.py",
        "lazier.py",
        "lazy.py",
        "pack/__init__.py",
        "pack/deep/other.py",
        "pack/inner.py",
        "pack/stop_words.txt",
        "words.py",
    )


TOPOLOGY_OF_ROOT = """
from examples.src.bolt.count import Count
from heron.api import Spout, Topology

class Lines(Spout):
    outputs = ("line",)
    def next_tuple(self):
        self.end()

class Words(Topology):
    lines = Lines.spec()
    count = Count.spec(inputs=[lines])

def later():
    from examples.src.lazy import late
"""


@pytest.fixture
def below_root(tmp_path: Path) -> Path:
    """A program that imports its bolt by the path from ROOT, as programs for heronpy do."""
    source = tmp_path / "root" / "examples" / "src"
    (source / "bolt").mkdir(parents=True)
    (source / "words.py").write_text(TOPOLOGY_OF_ROOT, encoding="utf-8")
    (source / "bolt" / "__init__.py").write_text("", encoding="utf-8")
    (source / "bolt" / "count.py").write_text(
        "from heron.api import Bolt\nfrom examples.src import beside\n\nclass Count(Bolt):\n"
        "    def process(self, tup):\n        beside.seen(tup)\n",
        encoding="utf-8",
    )
    for name in ("beside.py", "lazy.py", "unused.py"):
        (source / name).write_text("", encoding="utf-8")
    return source / "words.py"


def test_the_package_keeps_the_layout_of_the_imports(below_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that were imported from ROOT on PYTHONPATH have the same path in the package."""
    root = below_root.parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}/unrelated:{root}")
    loaded = load(below_root)
    assert (loaded.root, loaded.import_paths) == (root, ("examples/src", "."))
    assert loaded.files == tuple(
        f"examples/src/{name}" for name in ("beside.py", "bolt/__init__.py", "bolt/count.py", "lazy.py", "words.py")
    )
    assert [each.entry for each in loaded.definition.components] == ["words:Lines", "examples.src.bolt.count:Count"]


def test_a_root_that_no_import_needs_changes_nothing(words_file: WordsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH may name a home folder; the package stays as small as the program."""
    path = words_file(CLASS + "import beside\n")
    (path.parent / "beside.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(path.parents[1]))
    loaded = load(path)
    assert (loaded.root, loaded.files, loaded.import_paths) == (path.parent, ("beside.py", "words.py"), (".",))


def test_a_package_of_a_root_loads_on_another_machine(
    below_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that restarts on another machine has the package, and neither ROOT nor its PYTHONPATH."""
    root = below_root.parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root))
    loaded = load(below_root)
    pack(loaded.root, loaded.files, manifest_of(loaded), tmp_path / "package.tar.gz")
    monkeypatch.delenv("PYTHONPATH")
    shutil.rmtree(root)
    unpack(tmp_path / "package.tar.gz", tmp_path / "elsewhere")
    program = (
        "import sys\nfrom pathlib import Path\nfrom heron.instance.user.user_component import UserPackage\n"
        "package = UserPackage(Path(sys.argv[1]))\n"
        "for entry in sys.argv[2:]:\n"
        "    method = package.component_class(entry)\n"
        "    print(method.__module__, sys.modules[method.__module__].__file__)\n"
        "import examples.src.lazy\n"
    )
    entries = [each.entry for each in loaded.definition.components]
    stored = StoredProgram("oci://here/words", tmp_path / "elsewhere", read_manifest(tmp_path / "elsewhere"))
    with LoadingTopology(stored, ()) as loading:  # as `heron submit --package`
        again = loading.result()
    assert replace(again, root=loaded.root, package_uri="") == loaded
    assert (again.root, again.package_uri) == (tmp_path / "elsewhere", "oci://here/words")
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "elsewhere"), *entries]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"words {tmp_path}/elsewhere/examples/src/words.py",
        f"examples.src.bolt.count {tmp_path}/elsewhere/examples/src/bolt/count.py",
    ]


def test_a_package_whose_file_defines_another_name_is_refused(
    words_file: WordsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its containers would run a topology that the command has not checked."""
    path = words_file(
        BUILD + "if __name__ == '__main__':\n    import os\n    build(os.environ['NAME']).build_and_submit()\n"
    )
    monkeypatch.setenv("NAME", "First")
    loaded = load(path)
    pack(loaded.root, loaded.files, manifest_of(loaded), tmp_path / "package")
    manifest = unpack(tmp_path / "package", tmp_path / "elsewhere")
    monkeypatch.setenv("NAME", "Second")
    with (
        LoadingTopology(StoredProgram("uri", tmp_path / "elsewhere", manifest), ()) as loading,
        pytest.raises(UsageError, match="defines topology 'Second' here, and defined 'First' where it was packed"),
    ):
        loading.result()
