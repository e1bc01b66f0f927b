"""The suites: what pytest runs together, and has one result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from verify.import_graph import ImportGraph
from verify.workspace import Workspace

__all__ = ["CONTRACT_TESTS", "END_TO_END_TESTS", "MARK", "SERVERS", "Kind", "Suite", "find_suites", "server_fixtures"]

SERVERS = "tests/servers"
"""The folder whose modules hold servers and their fixtures."""
MARK = "servers"
"""The mark of tests that need a server; `SERVERS` gives it to those that use a fixture."""
CONTRACT_TESTS = re.compile(r"tests/contract/test_(\w+)\.py")
END_TO_END_TESTS = re.compile(r"tests/e2e/test_(on_\w+)\.py")

_PLUGIN_TESTS = re.compile(r"plugins/([^/]+)/tests/.+")


class Kind(Enum):
    """What the tests of a suite are about."""

    PLUGIN = "plugin"
    CONTRACT = "contract"
    END_TO_END = "end to end"


@dataclass(frozen=True, slots=True)
class Suite:
    """`path` is what pytest is given; `subjects` are the words that its name has for plugins."""

    name: str
    kind: Kind
    path: str
    subjects: frozenset[str]


def find_suites(workspace: Workspace, graph: ImportGraph) -> list[Suite]:
    """All suites, by name. A plugin whose tests need no server has none: `./dev test` runs them."""
    fixtures = server_fixtures(workspace, graph)
    found: dict[str, Suite] = {}
    for path in workspace.files:
        if plugin := _PLUGIN_TESTS.fullmatch(path):
            name = plugin[1]
            if name not in found and needs_server(graph, path, fixtures):
                found[name] = Suite(name, Kind.PLUGIN, f"plugins/{name}/tests", frozenset({name}))
        elif contract := CONTRACT_TESTS.fullmatch(path):
            suite = _of_file(f"contract_{contract[1]}", Kind.CONTRACT, path)
            found[suite.name] = suite
        elif (end_to_end := END_TO_END_TESTS.fullmatch(path)) and needs_server(graph, path, fixtures):
            suite = _of_file(end_to_end[1], Kind.END_TO_END, path)
            found[suite.name] = suite
    return [found[name] for name in sorted(found)]


def server_fixtures(workspace: Workspace, graph: ImportGraph) -> dict[str, str]:
    """The module in `SERVERS` of each fixture there."""
    modules = [path for path in workspace.below(SERVERS) if path.endswith(".py")]
    return {name: path for path in modules for name in graph.facts(path).fixtures}


def needs_server(graph: ImportGraph, path: str, fixtures: dict[str, str]) -> bool:
    """Whether a file has the mark or names a server's fixture."""
    facts = graph.facts(path)
    return MARK in facts.marks or not facts.arguments.isdisjoint(fixtures)


def _of_file(stem: str, kind: Kind, path: str) -> Suite:
    words = stem.split("_")
    return Suite("-".join(words), kind, path, frozenset(words))
