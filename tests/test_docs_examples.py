"""The examples in the documents run, and the files that they name exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(path for pattern in ("*.md", "docs/**/*.md") for path in ROOT.glob(pattern))
BASES = (ROOT, ROOT / "heron-core" / "src" / "heron", ROOT / "heron-core" / "src", *sorted(ROOT.glob("plugins/*/src")))
TREES = ("heron-core", "plugins", "tests", "examples", "docs")

PATH = re.compile(r"`((?:[\w-]+/)*[\w.-]+\.(?:py|pyi|md|proto|toml|yaml|txt)|(?:[\w-]+/)+)`")
PLACEHOLDER = re.compile(r"NAME|FAMILY|PACKAGE|RUN|^(hello|page_views)\.py$")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def missing_paths(document: Path) -> list[str]:
    named = PATH.findall(document.read_text(encoding="utf-8"))
    return [name for name in named if not PLACEHOLDER.search(name) and not is_there(name)]


@cache
def is_there(name: str) -> bool:
    if "/" in name:
        return any((base / name).exists() for base in BASES)
    return (ROOT / name).exists() or any(next((ROOT / tree).rglob(name), None) for tree in TREES)


def test_files_that_a_document_names_exist() -> None:
    """ARCHITECTURE.md names files, and files are often renamed."""
    assert [f"{page.relative_to(ROOT)}: {path}" for page in DOCUMENTS for path in missing_paths(page)] == []


def run_topology(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "hello.py").write_text(code, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("heron")), "run", "hello.py", "--timeout", "60"]
    environment = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.mark.matrix
def test_the_topology_of_the_page_on_delivery_runs_to_its_end(tmp_path: Path) -> None:
    """The topology ends only when every line is acked."""
    code, *_ = CODE.findall((ROOT / "docs" / "at-least-once.md").read_text(encoding="utf-8"))
    assert "10 words" in run_topology(code, tmp_path).stdout


@pytest.mark.matrix
def test_the_child_of_the_page_on_languages_prints_what_the_page_says(tmp_path: Path) -> None:
    """The program in the child needs no library."""
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    child, topology, *_ = CODE.findall(page)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "shout.py").write_text(child, encoding="utf-8")
    printed = [line for line in run_topology(topology, tmp_path).stdout.splitlines() if line]
    assert printed == [line.strip() for line in page.splitlines() if line.startswith("    ") and line.strip().isupper()]


@pytest.mark.matrix
def test_the_dead_letters_of_the_page_on_delivery_are_received(tmp_path: Path) -> None:
    """A line with a word that always raises; the spout drops what is given up."""
    code, config, keep = CODE.findall((ROOT / "docs" / "at-least-once.md").read_text(encoding="utf-8"))
    for before, after in (
        (next(line for line in code.splitlines() if line.startswith("builder.set_config")), config),
        ("if __name__", f"{keep}\n\nif __name__"),
        ("import Bolt,", "import Bolt, DeadLetter,"),
        ("self.todo.append(tup_id)", "del self.waiting[tup_id]"),
        ("word = tup.values[0]\n", "word = tup.values[0]\n        assert word != 'question', 'no answer'\n"),
    ):
        assert before in code
        code = code.replace(before, after)
    printed = run_topology(code, tmp_path).stdout
    assert "['that is the question'] failed in count with AssertionError: no answer" in printed


@pytest.mark.matrix
def test_the_topology_of_the_page_on_columns_finds_the_warmest(tmp_path: Path) -> None:
    """A batch goes to the tasks of its keys."""
    (code,) = CODE.findall((ROOT / "docs" / "columns.md").read_text(encoding="utf-8"))
    printed = [line.split("| ")[-1] for line in run_topology(code, tmp_path).stdout.splitlines() if "sensor" in line]
    assert sorted(printed) == ["sensor0 2997.0", "sensor1 2998.0", "sensor2 2999.0"]


@pytest.mark.matrix
def test_the_topology_of_the_page_on_state_counts_each_word_once(tmp_path: Path) -> None:
    """The topology ends with a checkpoint."""
    (code,) = CODE.findall((ROOT / "docs" / "state.md").read_text(encoding="utf-8"))
    printed = [line for line in run_topology(code, tmp_path).stdout.splitlines() if line]
    assert sorted(printed) == ["be 2", "is 1", "not 1", "or 1", "question 1", "that 1", "the 1", "to 2"]


@pytest.mark.matrix
def test_the_topology_of_the_page_for_authors_runs_and_its_test_passes(tmp_path: Path) -> None:
    """Authors take over both parts."""
    page = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")
    topology, test, _ = CODE.findall(page)
    printed = [line for line in run_topology(topology, tmp_path).stdout.splitlines() if line]
    assert printed == [line.strip() for line in page.splitlines() if line.startswith("    [('page0'")]
    (tmp_path / "page_views.py").write_text(topology, encoding="utf-8")
    (tmp_path / "test_page_views.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page_views.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.matrix
def test_the_windows_of_the_page_for_authors_close_as_printed(tmp_path: Path) -> None:
    """Each closes when the watermark has passed it, and the last one at the end."""
    page = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")
    printed = run_topology(CODE.findall(page)[2], tmp_path).stdout
    expected = [line.strip() for line in page.splitlines() if line.startswith("    until ")]
    assert [line.split("| ")[-1] for line in printed.splitlines() if "until" in line] == expected


@pytest.mark.matrix
def test_the_pipeline_of_the_page_on_streamlets_prints_what_the_page_says(tmp_path: Path) -> None:
    """The order of lines of two components varies."""
    page = (ROOT / "docs" / "streamlets.md").read_text(encoding="utf-8")
    page = page.partition("## Operators")[0]
    (code,) = CODE.findall(page)
    printed = [line.split("| ")[-1] for line in run_topology(code, tmp_path).stdout.splitlines() if ": " in line]
    expected = [
        line.strip() for line in page.splitlines() if line.startswith(("    late:", "    0 s", "    10 s", "    20 s"))
    ]
    assert sorted(line for line in printed if line[0].isdigit() or line.startswith("late")) == sorted(expected)


@pytest.mark.matrix
def test_the_pipeline_of_the_page_on_views_is_read_as_the_page_says(tmp_path: Path) -> None:
    """The live side alone: no batch has run, so there is no end of history."""
    pipeline, reader = CODE.findall((ROOT / "docs" / "views.md").read_text(encoding="utf-8"))
    run_topology(pipeline, tmp_path)
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", reader]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.startswith("{'ad-1': 2, 'ad-2': 0} None "), ran.stderr


def test_first_topology_of_the_readme_runs_and_prints_what_the_readme_says(tmp_path: Path) -> None:
    """New users copy this example first."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, _ = CODE.findall(readme)
    assert len([line for line in code.splitlines() if line]) <= 20
    ran = run_topology(code, tmp_path)
    printed = sorted(line for line in ran.stdout.splitlines() if line)
    assert printed == [line.strip() for line in readme.splitlines() if line.startswith("    count/")]


def test_pipeline_of_the_readme_counts_the_lines_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines on Spark have tests of their own; the file is the same."""
    _, code = CODE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / "logs").mkdir()
    lines = [f"{1_767_225_600 + 2 * number} /page{number % 3}" for number in range(60)]
    (tmp_path / "logs" / "a.log").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    run_topology(code.replace('"logs/', f'"{tmp_path}/logs/').replace('"visits")', f'"{tmp_path}/visits")'), tmp_path)
    written = [line for path in (tmp_path / "visits").glob("*.txt") for line in path.read_text().splitlines()]
    assert sorted(written) == [f"00:0{minute} /page{page} 10" for minute in range(2) for page in range(3)]


@pytest.mark.matrix
def test_the_columns_of_the_page_on_streamlets_are_counted(tmp_path: Path) -> None:
    """The second program of the page."""
    code = CODE.findall((ROOT / "docs" / "streamlets.md").read_text(encoding="utf-8"))[1]
    printed = [line.split("| ")[-1] for line in run_topology(code, tmp_path).stdout.splitlines() if " s: " in line]
    assert sorted(printed) == ["0 s: a {'bids': 2, 'total': 40}", "10 s: a {'bids': 1, 'total': 5}"]
