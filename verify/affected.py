"""Which files of tests a change reaches, the nearest first; ``./dev quick`` runs them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from verify.import_graph import ImportGraph
from verify.inputs import SANDBOX
from verify.named_files import NamedFiles
from verify.suites import TEST_FILE
from verify.workspace import Workspace

__all__ = ["affected_tests"]

_PAGE_TESTS = "tests/test_docs_"
_FIXTURE = re.compile(r"\bsandbox\b")  # which no import shows


def affected_tests(workspace: Workspace, graph: ImportGraph, changed: Iterable[str]) -> dict[str, int]:
    """The files of tests that changed files reach, with their distance, the nearest first.

    The distance of a changed file is 0; of a file that imports or names it, or has it as its ``conftest``, 1; and so
    on. A ``pyproject.toml`` reaches the tests of its distribution, a page the tests of pages. Any other file that is
    not Python, or that was removed, reaches the modules beside it.
    """
    users = _users(workspace, graph)
    distances: dict[str, int] = {}
    waiting = [*dict.fromkeys(changed)]
    distance = 0
    while waiting:
        distances.update(dict.fromkeys(waiting, distance))
        near = {user for path in waiting for user in users[path]}
        if distance == 0:
            near |= {each for path in waiting for each in _beside(workspace, path)}
        waiting = sorted(near - distances.keys())
        distance += 1
    found = {path: distances[path] for path in workspace.files if path in distances and TEST_FILE.fullmatch(path)}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _users(workspace: Workspace, graph: ImportGraph) -> defaultdict[str, set[str]]:
    """For each file the files that need it directly."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    named = NamedFiles(graph, workspace.files)
    known = set(workspace.files)
    plugins = {
        path for each in workspace.distributions.values() for name in each.pytest_plugins for path in graph.module(name)
    }
    for path in workspace.files:
        if not path.endswith(".py"):
            continue
        needed = set(graph.needed(path))
        if TEST_FILE.fullmatch(path):
            conftests = {(parent / "conftest.py").as_posix() for parent in PurePosixPath(path).parents}
            needed |= named.named(path) | plugins | conftests & known
            if _FIXTURE.search(workspace.text(path)):
                needed |= {SANDBOX} & known
        for each in needed - {path}:
            found[each].add(path)
    return found


def _beside(workspace: Workspace, path: str) -> list[str]:
    """What a file reaches that no import shows."""
    folder, _, name = path.rpartition("/")
    if name == "pyproject.toml" and folder:
        return workspace.below(f"{folder}/tests")
    if name.endswith(".md"):
        return [each for each in workspace.files if each.startswith(_PAGE_TESTS)]
    if folder and (not name.endswith(".py") or path not in workspace.files):
        return [each for each in workspace.below(folder) if each.endswith(".py") and each.rpartition("/")[0] == folder]
    return []
