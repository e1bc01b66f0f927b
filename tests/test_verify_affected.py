"""The tests that a change reaches, nearest first; and how far behind a record is."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify.affected import affected_tests
from verify.history import Commit, History
from verify.import_graph import ImportGraph
from verify.records import Record
from verify.workspace import Workspace

TREE = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["tests"]\n',
    "heron-core/pyproject.toml": '[project]\nname = "heron-core"\n',
    "heron-core/src/heron/__init__.py": "",
    "heron-core/src/heron/errors.py": "",
    "heron-core/src/heron/router.py": "import heron.errors\n",
    "heron-core/src/heron/schema.json": "{}",
    "heron-core/tests/conftest.py": "",
    "heron-core/tests/test_errors.py": "import heron.errors\n",
    "heron-core/tests/test_router.py": "import heron.router\n",
    "plugins/sink-x/pyproject.toml": '[project]\nname = "heron-sink-x"\n',
    "plugins/sink-x/src/heron_x/__init__.py": "",
    "plugins/sink-x/tests/test_x.py": "import heron_x\n",
    "plugins/sink-x/tests/test_data.py": 'DATA = "golden.bin"\n',
    "plugins/sink-x/tests/golden.bin": "",
    "tests/builders.py": "import heron.router\n",
    "tests/test_docs_links.py": "",
    "tests/test_built.py": "import builders\n",
    "docs/index.md": "",
}


def affected(root: Path, *changed: str) -> list[tuple[str, int]]:
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    workspace = Workspace(root)
    return [
        (path.rpartition("/")[2], far)
        for path, far in affected_tests(workspace, ImportGraph(workspace), changed).items()
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("heron-core/src/heron/errors.py", [("test_errors.py", 1), ("test_router.py", 2), ("test_built.py", 3)]),
        ("plugins/sink-x/src/heron_x/__init__.py", [("test_x.py", 1)]),
        ("heron-core/tests/test_router.py", [("test_router.py", 0)]),
        ("heron-core/tests/conftest.py", [("test_errors.py", 1), ("test_router.py", 1)]),
        ("heron-core/src/heron/schema.json", [("test_errors.py", 2), ("test_router.py", 2), ("test_built.py", 3)]),
        ("plugins/sink-x/tests/golden.bin", [("test_data.py", 1), ("test_x.py", 1)]),
        ("plugins/sink-x/pyproject.toml", [("test_data.py", 1), ("test_x.py", 1)]),
        ("plugins/sink-x/tests/removed.py", [("test_data.py", 1), ("test_x.py", 1)]),
        ("docs/index.md", [("test_docs_links.py", 1)]),
        ("tests/builders.py", [("test_built.py", 1)]),
    ],
)
def test_a_change_reaches_the_tests_that_need_it(tmp_path: Path, changed: str, expected: list[tuple[str, int]]) -> None:
    """By imports, conftest, names of files, distributions and folders."""
    assert affected(tmp_path, changed) == expected


def test_the_distance_is_that_to_the_nearest_change(tmp_path: Path) -> None:
    """Several files change together."""
    found = affected(tmp_path, "heron-core/src/heron/errors.py", "tests/builders.py")
    assert found == [("test_errors.py", 1), ("test_built.py", 1), ("test_router.py", 2)]


def record(revision: str, when: str = "1970-01-01T00:00:15Z") -> Record:
    return Record("a", "k", when, 1.0, 1, 0, "", "", {}, {}, {}, revision)


COMMITS = [Commit(f"r{count}", 10 * count, frozenset({f"f{count}"})) for count in range(5, 0, -1)]


def test_the_age_is_in_commits_by_revision_or_by_time() -> None:
    """A branch that was squashed leaves revisions that are not on the main line; older records have none."""
    history = History(COMMITS)
    assert [history.age(record(each)) for each in ("r5", "r4", "r1")] == [0, 1, 4]
    assert history.age(record("gone")) == 4  # of the commits at 10, 20, …, 50 seconds, one was before 15
    assert History().age(record("")) == 0


@pytest.mark.parametrize(
    ("inputs", "behind"), [({"f1"}, 3), ({"f2"}, 3), ({"f3"}, 3), ({"f4", "f5"}, 2), ({"f5"}, 1), ({"new"}, 0)]
)
def test_a_suite_is_behind_since_the_first_change_of_an_input(inputs: set[str], behind: int) -> None:
    """Changes before the run do not count; a change that is not committed is the newest."""
    history = History(COMMITS, frozenset({"new"}))
    assert history.behind(record("r2"), inputs) == behind
