"""The suites: what runs together, with one command, and has one result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from verify.import_graph import ImportGraph
from verify.workspace import Workspace

__all__ = ["SERVERS", "TEST_FILE", "Kind", "Suite", "find_suites", "needs_server", "pytest_suite", "server_fixtures"]

TEST_FILE = re.compile(r"(?:.+/)?tests/(?:.+/)?test_\w+\.py")
SERVERS = "plugins/testing-servers/src/heron_testing_servers"
"""The folder whose modules hold servers; a module names its fixtures in `FIXTURES`."""

_SERVERS = "servers"  # the mark of tests that need a server; `SERVERS` gives it to those that use a fixture
_MATRIX = "matrix"  # the mark of tests that only recorded suites run; tests/e2e has it where none of `_IN_DEV_TEST` is
_IN_DEV_TEST = frozenset({"guarantee", "starts_nothing"})
_LONG = frozenset({"chaos", "soak"})
_OTHER_PYTHONS = ("3.12", "3.13")

_PLUGIN_TESTS = re.compile(r"plugins/([^/]+)/tests/(?:.+/)?test_\w+\.py")
_CONTRACT_TESTS = re.compile(r"tests/contract/test_(\w+)\.py")
_END_TO_END_TESTS = re.compile(r"tests/e2e/(?:\w+/)*test_(\w+)\.py")


class Kind(Enum):
    """What a suite is about; the inputs depend on it."""

    PLUGIN = "plugin"
    FILE = "file"
    END_TO_END = "end to end"
    WHEEL = "wheel"
    WHEELS = "wheels"
    INTERPRETER = "interpreter"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Suite:
    """`path` is where its tests are; `subjects` are the words that its name has for plugins."""

    name: str
    kind: Kind
    path: str
    subjects: frozenset[str]
    command: tuple[str, ...]


def find_suites(workspace: Workspace, graph: ImportGraph) -> list[Suite]:
    """All suites, by name."""
    fixtures = server_fixtures(workspace, graph)
    tests = [path for path in workspace.files if TEST_FILE.fullmatch(path)]
    needing = {path for path in tests if needs_server(graph, path, fixtures)}
    plugins = {match[1] for path in needing if (match := _PLUGIN_TESTS.fullmatch(path))}
    suites = [pytest_suite(name, Kind.PLUGIN, f"plugins/{name}/tests", _SERVERS) for name in plugins]
    suites += [suite for path in tests if (suite := _suite_of(graph, path, needs_server=path in needing))]
    found = {suite.name: suite for suite in (*suites, *_sessions(workspace))}
    return [found[name] for name in sorted(found)]


def server_fixtures(workspace: Workspace, graph: ImportGraph) -> dict[str, str]:
    """The module in `SERVERS` of each fixture there."""
    modules = [path for path in workspace.below(SERVERS) if path.endswith(".py")]
    return {name: path for path in modules for name in graph.facts(path).fixtures}


def needs_server(graph: ImportGraph, path: str, fixtures: dict[str, str]) -> bool:
    """Whether a file has the mark or names a server's fixture."""
    facts = graph.facts(path)
    return _SERVERS in facts.marks or not facts.arguments.isdisjoint(fixtures)


def pytest_suite(name: str, kind: Kind, path: str, *marks: str) -> Suite:
    """The tests below a path that have one of the marks, except the long ones."""
    chosen = f"({' or '.join(marks)})" if len(marks) > 1 else marks[0]
    command = ("python", "-m", "pytest", "-m", f"{chosen} and not soak and not chaos", path)
    words = {name} if kind is Kind.PLUGIN else set(name.split("-"))
    return Suite(name, kind, path, frozenset(words), command)


def _suite_of(graph: ImportGraph, path: str, *, needs_server: bool) -> Suite | None:
    """The suite of a file of tests, if some of its tests run only there."""
    facts = graph.facts(path)
    if match := _CONTRACT_TESTS.fullmatch(path):
        return pytest_suite(_name("contract", match[1]), Kind.FILE, path, _SERVERS, _MATRIX)
    if match := _END_TO_END_TESTS.fullmatch(path):
        name = _name(match[1]) if match[1].startswith("on_") else _name("e2e", match[1])
        if needs_server:
            return pytest_suite(name, Kind.END_TO_END, path, _SERVERS, _MATRIX)
        in_matrix = any(marks.isdisjoint(_IN_DEV_TEST | _LONG) for marks in facts.tests)
        return pytest_suite(name, Kind.END_TO_END, path, _MATRIX) if in_matrix else None
    # All tests of a package run with its wheel alone, or on other interpreters.
    if _MATRIX in facts.marks and path.startswith("tests/"):
        parts = [part.removeprefix("test_") for part in PurePosixPath(path).with_suffix("").parts]
        name = _name("matrix", *(part for part in parts if part != "tests"))
        return pytest_suite(name, Kind.FILE, path, _MATRIX)
    return None


def _sessions(workspace: Workspace) -> list[Suite]:
    """The suites that are a session of `noxfile.py`, where there is one."""
    if "noxfile.py" not in workspace.files:
        return []
    tested = {match[1] for path in workspace.files if (match := _PLUGIN_TESTS.fullmatch(path))}
    wheels = [_session(f"wheel-{name}", Kind.WHEEL, f"plugins/{name}/tests", "wheel", name) for name in tested]
    pythons = [
        _session(f"python-{each}", Kind.INTERPRETER, "heron-core/tests", "elsewhere", each) for each in _OTHER_PYTHONS
    ]
    return [
        *wheels,
        *pythons,
        _session("wheels", Kind.WHEELS, "plugins", "wheel"),
        _session("site", Kind.SITE, "docs", "docs"),
    ]


def _session(name: str, kind: Kind, path: str, session: str, argument: str = "") -> Suite:
    command = ("./dev", session, *(("--", argument) if argument else ()))
    return Suite(name, kind, path, frozenset({argument}) - {""}, command)


def _name(*parts: str) -> str:
    return "-".join(parts).replace("_", "-")
