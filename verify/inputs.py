"""The inputs of a suite: all files that can change its result, in groups."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from verify.import_graph import ImportGraph
from verify.named_files import NamedFiles
from verify.suites import SERVERS, TEST_FILE, Kind, Suite, server_fixtures
from verify.workspace import Distribution, Workspace

__all__ = ["OWN", "SANDBOX", "Group", "InputFinder", "Inputs"]

_CONTRACT = "plugins/testing/"
SANDBOX = "plugins/testing/src/heron_testing/sandbox.py"  # behind the fixture `sandbox`; it runs the command
_BUNDLE = "plugins/bundle-local"
_FINDS_DRIVERS = "stevedore"
_CORE = "heron-core"
_SITE = "docs_site"
_CONTENTS = f"{_SITE}/contents.yml"
_SESSIONS = "noxfile.py"
_END_TO_END = "tests/e2e"
_PROGRAMS = "topologies"  # the folder of programs that end-to-end tests start, each by its name
_EXAMPLE = "examples/word_count.py"  # what ./dev wheel runs
_OF_SESSIONS = frozenset({Kind.WHEEL, Kind.WHEELS, Kind.INTERPRETER, Kind.SITE})
_TOOLS = {
    Kind.WHEEL: frozenset({"hatchling", "uv"}),
    Kind.WHEELS: frozenset({"hatchling", "uv"}),
    Kind.SITE: frozenset({"mkdocs", "mkdocs-material", "mkdocstrings", "mkdocstrings-python"}),
}


class Group(Enum):
    """Where an input comes from; `docs/decisions/019-results-by-content.md` says what each holds."""

    TESTS = "tests"
    SHARED = "shared"
    PLUGINS = "plugins"
    CONTRACT = "contract"
    SERVERS = "servers"
    LIBRARIES = "libraries"
    CORE = "core"


OWN = frozenset(Group) - {Group.CORE, Group.SHARED}
"""A suite runs before the others when one of these changed."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """`files` are sorted; `requires` are the names of packages that the tests and distributions need directly.

    Of the files in `read`, the tests may read the text: names of files, and everything for tests that read sources.
    """

    files: dict[Group, list[str]]
    read: set[str]
    requires: frozenset[str]


class InputFinder:
    """Finds the inputs of each suite of a workspace."""

    def __init__(self, workspace: Workspace, graph: ImportGraph) -> None:
        self._workspace = workspace
        self._graph = graph
        sandbox = {"sandbox": SANDBOX} if SANDBOX in workspace.files else {}
        self._fixtures = server_fixtures(workspace, graph) | sandbox
        self._distributions = workspace.distributions
        self._sources = {
            path for path in workspace.files if "/src/" in path and path.startswith(("heron-core/src/", "plugins/"))
        }
        self._servers = set(workspace.below(SERVERS))
        self._contract = {path for path in self._sources if path.startswith(_CONTRACT)}
        self._other_files = [path for path in workspace.files if path not in self._sources]
        self._named = NamedFiles(graph, self._other_files)
        self._data: defaultdict[str, set[str]] = defaultdict(set)
        for path in self._sources:
            if not path.endswith(".py"):
                self._data[path.rpartition("/")[0]].add(path)
        below = workspace.below(_END_TO_END)
        of_tests = {_END_TO_END, *(path.rpartition("/")[0] for path in below if TEST_FILE.fullmatch(path))}
        self._programs = [path for path in below if path.rpartition("/")[0] not in of_tests]
        self._imported: dict[str, set[str]] = {}
        self._projects = {f"{each.folder}/pyproject.toml" for each in self._distributions.values()}
        self._scripts = {script for each in self._distributions.values() for script in each.scripts}

    def inputs(self, suite: Suite) -> Inputs:
        """The inputs of one suite, from what it is given to what that needs in turn."""
        given = self._given(suite)
        files: set[str] = set()
        read: set[str] = set()
        while more := given - files:
            files = self._graph.reached(more, files)
            read = self._read_by_tests(suite, files)
            given = read | self._asked_for(files) | self._sources_of(self._run_by(suite, files))
        involved = self._involved(files)
        files |= {f"{each.folder}/pyproject.toml" for each in involved} | self._data_beside(files)
        if suite.kind in _OF_SESSIONS:
            files.add(_SESSIONS)  # without what other sessions need
        groups = self._groups(suite, files)
        readers = (self._graph.facts(path).reads_source for path in groups[Group.TESTS] + groups[Group.PLUGINS])
        reads_all = suite.kind is Kind.SITE or any(readers)
        return Inputs(groups, files if reads_all else read, self._requires(suite, files, involved))

    def _given(self, suite: Suite) -> set[str]:
        """What runs, what pytest loads with it, and the plugin that it is about."""
        files = self._tests(suite)
        for parent in PurePosixPath(suite.path, "x").parents:
            files.update({(parent / "conftest.py").as_posix()}.intersection(self._workspace.files))
        for each in self._distributions.values():
            files.update(path for plugin in each.pytest_plugins for path in self._graph.module(plugin))
        subjects = [self._distribution_at(folder) for folder in self._subjects(suite)]
        files |= self._sources_of(subjects)
        match suite.kind:
            case Kind.WHEEL:
                files |= {f"{each.folder}/pyproject.toml" for each in self._with_required(subjects)}
            case Kind.WHEELS:
                files |= self._sources_of(self._distributions.values()) | {_EXAMPLE}.intersection(self._workspace.files)
            case Kind.INTERPRETER:
                files |= self._sources_of(each for each in self._distributions.values() if each.folder == _CORE)
            case Kind.SITE:
                modules = re.findall(r"- module (\S+)", self._workspace.text(_CONTENTS))
                files |= {path for module in modules for path in self._graph.module(module)}
        return files

    def _tests(self, suite: Suite) -> set[str]:
        """The files that only this suite runs."""
        match suite.kind:
            case Kind.WHEELS:
                return set(self._projects)
            case Kind.SITE:
                pages = {path for path in self._other_files if path.endswith(".md")}
                tests = [path for path in self._workspace.below("tests") if path.startswith("tests/test_docs_")]
                used = [path for path in tests if path.endswith(("_links.py", "_site.py"))]
                return pages.union(used, self._workspace.below(suite.path), self._workspace.below(_SITE))
        return {suite.path} if suite.path.endswith(".py") else set(self._workspace.below(suite.path))

    def _own(self, suite: Suite) -> set[str]:
        """The tests of the suite and the files that they name."""
        tests = self._tests(suite)
        return tests.union(*map(self._named.named, tests))

    def _read_by_tests(self, suite: Suite, files: set[str]) -> set[str]:
        """The files outside the sources that tests name, and the programs that end-to-end tests start by name."""
        tests = files - self._sources - self._servers
        found = {each for path in tests for each in self._named.named(path)}
        if suite.kind is Kind.END_TO_END:
            facts = [self._graph.facts(path) for path in tests.difference(self._programs)]
            names = set().union(*(each.paths | each.imports | each.programs for each in facts))
            # By the name of a module, or of its folder for a hook that is put on the path.
            found.update(path for path in self._programs if not names.isdisjoint(_names_of(path)))
        return found

    def _asked_for(self, files: set[str]) -> set[str]:
        """The fixtures of servers, and the sandbox, that tests ask for."""
        asking = (files - self._sources) | (files & self._contract) | (files & self._servers)
        facts = (self._graph.facts(path) for path in asking)
        return {self._fixtures[name] for each in facts for name in self._fixtures.keys() & each.arguments}

    def _run_by(self, suite: Suite, files: set[str]) -> list[Distribution]:
        """The distributions of which tests start programs, or name a driver or a command, and those that these need."""
        tests = files - self._sources - self._servers
        facts = [self._graph.facts(path) for path in tests]
        folders = {path.removeprefix("/") for each in facts for path in each.paths}
        found = [each for each in self._distributions.values() if each.folder in folders]
        runs_heron = suite.kind is Kind.END_TO_END or SANDBOX in files
        runs_heron = runs_heron or any(each.programs & self._scripts for each in facts)
        if runs_heron:
            found += [each for each in self._distributions.values() if each.scripts or each.folder == _BUNDLE]
        if runs_heron or _FINDS_DRIVERS in self._imports(files):
            words = {part for each in facts for word in each.words for part in word.split(".")}
            found += [each for each in self._distributions.values() if (each.drivers | each.commands) & words]
        return self._with_required(found)

    def _with_required(self, distributions: list[Distribution]) -> list[Distribution]:
        found: dict[str, Distribution] = {}
        waiting = list(distributions)
        while waiting:
            each = waiting.pop()
            if each.name not in found:
                found[each.name] = each
                waiting += [self._distributions[name] for name in each.requires if name in self._distributions]
        return list(found.values())

    def _sources_of(self, distributions: Iterable[Distribution]) -> set[str]:
        """All sources of distributions, and what they say of themselves."""
        listed = list(distributions)
        sources = {path for each in listed for path in self._workspace.below(f"{each.folder}/src")}
        return sources | {f"{each.folder}/pyproject.toml" for each in listed}

    def _involved(self, files: set[str]) -> list[Distribution]:
        return [
            each
            for each in self._distributions.values()
            if not files.isdisjoint(self._workspace.below(f"{each.folder}/src"))
        ]

    def _data_beside(self, files: set[str]) -> set[str]:
        """What is not Python beside the sources: templates, schemas."""
        folders = {path.rpartition("/")[0] for path in files & self._sources}
        return set().union(*(self._data[folder] for folder in folders if folder in self._data))

    def _subjects(self, suite: Suite) -> list[str]:
        """The folders of the plugins that a suite is about: its name has theirs, or its file imports them."""
        if suite.kind in _OF_SESSIONS:
            return [suite.path.rpartition("/")[0]] if suite.kind is Kind.WHEEL else []
        facts = self._graph.facts(suite.path)
        imported = {path for name in facts.imports for path in self._graph.module(name)}
        return [
            each.folder
            for each in self._distributions.values()
            if each.folder.startswith("plugins/")
            and each.drivers
            and (
                suite.subjects & {*each.drivers, PurePosixPath(each.folder).name}
                or any(path.startswith(f"{each.folder}/src/") for path in imported)
            )
        ]

    def _distribution_at(self, folder: str) -> Distribution:
        return next(each for each in self._distributions.values() if each.folder == folder)

    def _groups(self, suite: Suite, files: set[str]) -> dict[Group, list[str]]:
        """Each file is in the first group that has it."""
        subjects = [self._distribution_at(folder) for folder in self._subjects(suite)]
        holds = [
            (Group.SERVERS, self._servers),
            (Group.PLUGINS, self._sources_of(subjects)),
            (Group.TESTS, self._own(suite)),
            (Group.CONTRACT, self._contract),
            (Group.CORE, self._sources | self._projects | {_SESSIONS}),
            (Group.SHARED, files),
        ]
        left, groups = set(files), {}
        for group, held in holds:
            groups[group] = sorted(left & held)
            left -= held
        return groups

    def _requires(self, suite: Suite, files: set[str], involved: list[Distribution]) -> frozenset[str]:
        imports = self._imports(files)
        requires = {name for each in involved for name in each.requires}
        return frozenset((imports | requires | _TOOLS.get(suite.kind, frozenset())) - self._distributions.keys())

    def _imports(self, files: set[str]) -> set[str]:
        """The first names of all imports."""
        for path in files - self._imported.keys():
            self._imported[path] = {name.partition(".")[0] for name in self._graph.facts(path).imports}
        return set().union(*map(self._imported.__getitem__, files))


def _names_of(program: str) -> set[str]:
    folder, _, name = program.rpartition("/")
    return {name.partition(".")[0], folder.rpartition("/")[2]} - {_PROGRAMS}
