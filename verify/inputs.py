"""The inputs of a suite: all files that can change its result, in groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from verify.import_graph import ImportGraph
from verify.suites import SERVERS, Kind, Suite, server_fixtures
from verify.workspace import Distribution, Workspace

__all__ = ["OWN", "Group", "InputFinder", "Inputs"]

_CONTRACT = "plugins/testing/"
_BUNDLE = "plugins/bundle-local"
_FINDS_DRIVERS = "stevedore"


class Group(Enum):
    """Where an input comes from; `docs/decisions/019-results-by-content.md` says what each holds."""

    TESTS = "tests"
    PLUGINS = "plugins"
    CONTRACT = "contract"
    SERVERS = "servers"
    LIBRARIES = "libraries"
    CORE = "core"


OWN = frozenset(Group) - {Group.CORE}
"""A change in any of these makes a suite run whatever the budget."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """`files` are sorted; `requires` are the names of packages that the tests and distributions need directly."""

    files: dict[Group, list[str]]
    requires: frozenset[str]


class InputFinder:
    """Finds the inputs of each suite of a workspace."""

    def __init__(self, workspace: Workspace, graph: ImportGraph) -> None:
        self._workspace = workspace
        self._graph = graph
        self._fixtures = server_fixtures(workspace, graph)
        self._distributions = workspace.distributions
        self._named_by: dict[str, set[str]] = {}
        self._other_files = [path for path in workspace.files if not self._is_source(path)]
        self._projects = {f"{each.folder}/pyproject.toml" for each in self._distributions.values()}
        self._scripts = {script for each in self._distributions.values() for script in each.scripts}

    def inputs(self, suite: Suite) -> Inputs:
        """The inputs of one suite, from what it is given to what that needs in turn."""
        given = self._given(suite)
        while True:
            files = self._graph.reached(given)
            more = given | self._asked_for(files) | self._sources_of(self._run_by(suite, files))
            if more == given:
                break
            given = more
        involved = self._involved(files)
        files |= {f"{each.folder}/pyproject.toml" for each in involved} | self._data_beside(files)
        subjects = self._subjects(suite)
        groups: dict[Group, list[str]] = {group: [] for group in Group if group is not Group.LIBRARIES}
        for path in sorted(files):
            groups[self._group(path, subjects)].append(path)
        return Inputs(groups, self._requires(files, involved))

    def _given(self, suite: Suite) -> set[str]:
        """The suite's tests, what pytest loads with them, and the plugin they belong to."""
        files = {suite.path} if suite.path.endswith(".py") else set(self._workspace.below(suite.path))
        for parent in PurePosixPath(suite.path, "x").parents:
            files.update({(parent / "conftest.py").as_posix()}.intersection(self._workspace.files))
        for each in self._distributions.values():
            files.update(path for plugin in each.pytest_plugins for path in self._graph.module(plugin))
        if suite.kind is Kind.END_TO_END:
            folder = suite.path.rpartition("/")[0]
            files.update(path for path in self._workspace.below(folder) if path.count("/") > suite.path.count("/"))
        return files | self._sources_of(self._distribution_at(folder) for folder in self._subjects(suite))

    def _asked_for(self, files: set[str]) -> set[str]:
        """The fixtures of servers that tests ask for, and the files that tests name."""
        found: set[str] = set()
        for path in files:
            if self._is_source(path) and not path.startswith(_CONTRACT):
                continue
            facts = self._graph.facts(path)
            found.update(self._fixtures[name] for name in facts.arguments if name in self._fixtures)
            if not self._is_source(path) and not path.startswith(f"{SERVERS}/"):
                found.update(self._named(path))
        return found

    def _named(self, path: str) -> set[str]:
        """The files outside the sources that strings of a file name: from the root, or by the end of their path."""
        if path not in self._named_by:
            texts = self._graph.facts(path).paths
            ends = tuple(f"/{text}" for text in texts if not text.startswith("/") and "." in text.rpartition("/")[2])
            self._named_by[path] = {
                each for each in self._other_files if f"/{each}" in texts or f"/{each}".endswith(ends)
            }
        return self._named_by[path]

    def _run_by(self, suite: Suite, files: set[str]) -> list[Distribution]:
        """The distributions of which tests start programs or load drivers by name, and those that these need."""
        tests = [path for path in files if not self._is_source(path) and not path.startswith(f"{SERVERS}/")]
        facts = [self._graph.facts(path) for path in tests]
        folders = {path.removeprefix("/") for each in facts for path in each.paths}
        found = [each for each in self._distributions.values() if each.folder in folders]
        runs_heron = suite.kind is Kind.END_TO_END or any(each.programs & self._scripts for each in facts)
        if runs_heron:
            found += [each for each in self._distributions.values() if each.scripts or each.folder == _BUNDLE]
        if runs_heron or any(_FINDS_DRIVERS in self._graph.facts(path).imports for path in files):
            words = {part for each in facts for word in each.words for part in word.split(".")}
            found += [each for each in self._distributions.values() if each.drivers & words]
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
        folders = {path.rpartition("/")[0] for path in files if self._is_source(path)}
        return {
            path
            for path in self._workspace.files
            if path.rpartition("/")[0] in folders and not path.endswith(".py") and self._is_source(path)
        }

    def _subjects(self, suite: Suite) -> list[str]:
        """The folders of the plugins that a suite is about: its name has theirs, or its file imports them."""
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

    def _is_source(self, path: str) -> bool:
        return "/src/" in path and path.startswith(("heron-core/src/", "plugins/"))

    def _group(self, path: str, subjects: list[str]) -> Group:
        if path.startswith(f"{SERVERS}/"):
            return Group.SERVERS
        if any(path.startswith((f"{folder}/src/", f"{folder}/pyproject.toml")) for folder in subjects):
            return Group.PLUGINS
        if path.startswith(f"{_CONTRACT}src/"):
            return Group.CONTRACT
        is_core = self._is_source(path) or path in self._projects
        return Group.CORE if is_core else Group.TESTS

    def _requires(self, files: set[str], involved: list[Distribution]) -> frozenset[str]:
        imports = {name.partition(".")[0] for path in files for name in self._graph.facts(path).imports}
        requires = {name for each in involved for name in each.requires}
        return frozenset((imports | requires) - self._distributions.keys())
