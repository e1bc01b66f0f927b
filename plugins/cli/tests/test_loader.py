"""Loading an author's file in a child process: what counts as its topology, and what each mistake says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.errors import UsageError
from heron_cli.launch.loaded import LoadedTopology, LoadingTopology, split_target

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
    """The shortest file an author can write needs no call at all."""
    loaded = load(words_file(CLASS))
    assert loaded.definition.name == "Words"
    assert [each.entry for each in loaded.definition.components] == ["words:Lines", "words:Count"]
    assert not loaded.script


def test_a_main_block_is_run_and_its_submission_captured(words_file: WordsFile) -> None:
    """heronpy programs submit from their main block."""
    path = words_file(BUILD + '\nif __name__ == "__main__":\n    build("words").build_and_submit()\n')
    loaded = load(path)
    assert loaded.definition.name == "words"
    assert loaded.script


def test_a_main_block_is_left_alone_where_a_class_is_the_topology(words_file: WordsFile) -> None:
    """A block that tests or prints something must not run behind the author's back."""
    path = words_file(CLASS + '\nif __name__ == "__main__":\n    raise RuntimeError("not wanted")\n')
    assert not load(path).script


def test_a_submission_at_module_level_is_captured(words_file: WordsFile) -> None:
    """A plain script without a main block is fine too."""
    assert load(words_file(BUILD + '\nbuild("plain").build_and_submit()\n')).definition.name == "plain"


def test_a_builder_that_is_only_there_is_taken(words_file: WordsFile) -> None:
    """Whoever forgets to submit means the only builder there is."""
    assert load(words_file(BUILD + '\ntopology = build("only")\n')).definition.name == "only"


@pytest.mark.parametrize(
    ("name", "topology"), [("first", "one"), ("second", "two"), ("made", "three"), ("Words", "Words")]
)
def test_a_name_chooses_builder_function_or_class(words_file: WordsFile, name: str, topology: str) -> None:
    """FILE:NAME is how one file serves several topologies."""
    path = words_file(
        BUILD + 'first = build("one")\nsecond = build("two")\ndef made():\n    return build("three")\n' + CLASS
    )
    assert load(f"{path}:{name}").definition.name == topology


def test_several_without_a_name_are_listed(words_file: WordsFile) -> None:
    """Guessing would run the wrong one."""
    path = words_file(CLASS + CLASS.replace("Words", "Other"))
    with pytest.raises(UsageError, match=r"has 2 topologies, 'Other', 'Words'; choose one: words.py:Other"):
        load(path)


def test_an_unknown_name_gives_the_nearest(words_file: WordsFile) -> None:
    """A slip of the finger is answered with what is there."""
    with pytest.raises(UsageError, match=r"no topology 'Word' \(nearest: 'Words'\); there are: 'Words'"):
        load(f"{words_file(CLASS)}:Word")


def test_a_file_without_a_topology_says_how_to_write_one(words_file: WordsFile) -> None:
    """The remedy stands in the error."""
    with pytest.raises(UsageError, match=r"has no topology; define a Topology class"):
        load(words_file(""))


def test_a_file_that_raises_is_one_line_with_its_place(words_file: WordsFile) -> None:
    """The author's line is what helps, not Heron's frames."""
    path = words_file("\ndef f():\n    return 1 / 0\nf()\n")
    line = path.read_text(encoding="utf-8").splitlines().index("    return 1 / 0") + 1
    with pytest.raises(UsageError, match=rf"words\.py:{line}: ZeroDivisionError: division by zero; ") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_syntax_error_names_its_line(words_file: WordsFile) -> None:
    """The compiler knows the line although nothing was run."""
    with pytest.raises(UsageError, match=r"words\.py:\d+: SyntaxError: invalid syntax"):
        load(words_file("\nlet x = 1\n"))


def test_a_missing_module_is_named(words_file: WordsFile) -> None:
    """The commonest way not to import."""
    with pytest.raises(UsageError, match=r"words\.py:\d+: ModuleNotFoundError: No module named 'nowhere_else'"):
        load(words_file("\nimport nowhere_else\n"))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys\nsys.exit(3)", "ended with exit code 3"),
        ("raise SystemExit('no text')", "exit code 1 while it was loaded: no text"),
        ("import os\nos._exit(4)", "its process ended by exit code 4"),
        ("import os\nos.abort()", "its process ended by signal SIGABRT"),
    ],
)
def test_a_file_that_ends_early_is_refused(words_file: WordsFile, code: str, said: str) -> None:
    """The file runs in a process of its own: even a crash there is one clear line here."""
    with pytest.raises(UsageError, match=re.escape(said)):
        load(words_file(f"\n{code}\n"))


def test_arguments_and_output_are_the_authors_own(words_file: WordsFile, capfd: pytest.CaptureFixture[str]) -> None:
    """argparse at module level reads sys.argv, and prints reach the terminal."""
    path = words_file(CLASS + "import sys\nprint('loaded with', sys.argv[1:])\nprint('warned', file=sys.stderr)\n")
    assert load(path, "--loops", "3").argv == ("--loops", "3")
    out, error = capfd.readouterr()
    assert out == "loaded with ['--loops', '3']\n"
    assert error == "warned\n"


def test_a_class_inside_the_main_block_is_refused(words_file: WordsFile) -> None:
    """No instance could import it: better said now than by a dying task."""
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
    """Ctrl-C while a file hangs must end the child as well."""
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
    """Every process imports the file under its own name, so the name must work as one."""
    with pytest.raises(UsageError, match=rf"{re.escape(name)}: the file's name {reason}.*; rename it"):
        load(words_file(CLASS, name))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """Checked before a child is started."""
    with pytest.raises(UsageError, match="no such file"):
        split_target(str(tmp_path / "absent.py"))
    with pytest.raises(UsageError, match="is a folder"):
        split_target(str(tmp_path))


def test_the_program_is_the_file_and_what_it_imports_from_its_folder(words_file: WordsFile) -> None:
    """Siblings, whole packages with their data, and what functions import later; nothing that is installed."""
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
