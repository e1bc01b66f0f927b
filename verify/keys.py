"""The key of a suite: one digest over its inputs, and one for each group of them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from verify.import_graph import ImportGraph
from verify.inputs import Group, InputFinder
from verify.pins import needed_pins, read_pins, required_by
from verify.source_files import SourceFiles
from verify.suites import Suite, find_suites
from verify.workspace import Workspace

__all__ = ["Key", "KeyFinder"]

_FORMAT = 2
"""Changes when the meaning of a key or the way that suites are run does, so that no older record is valid."""


@dataclass(frozen=True, slots=True)
class Key:
    """`value` identifies all inputs; `groups` tell which of them changed; `libraries` are the pins that count."""

    value: str
    groups: dict[str, str]
    libraries: dict[str, str]
    files: dict[str, list[str]]


class KeyFinder:
    """Reads the workspace once; make another one after files have changed."""

    def __init__(
        self,
        workspace: Workspace,
        required: Callable[[str], Iterable[str]] = required_by,
        cache: Path | None = None,
    ) -> None:
        self.workspace = workspace
        self._required = required
        self._pins = read_pins(workspace.text("constraints.txt"))
        self._settings: dict[str, str] = {}
        self.sources = SourceFiles(workspace, cache)
        self.graph = ImportGraph(workspace, self.sources)
        self._inputs = InputFinder(workspace, self.graph)
        self.suites: list[Suite] = find_suites(workspace, self.graph)

    def key(self, suite: Suite) -> Key:
        """The present key of a suite."""
        inputs = self._inputs.inputs(suite)
        libraries = needed_pins(inputs.requires, self._pins, self._required)
        contents: dict[str, dict[str, str]] = {
            group.value: {path: self._digest(path, inputs.read) for path in paths}
            for group, paths in inputs.files.items()
        }
        contents[Group.LIBRARIES.value] = libraries
        contents[Group.SHARED.value]["[tool.pytest]"] = self.workspace.pytest_settings
        groups = {group: _digest_of(content) for group, content in sorted(contents.items())}
        files = {group.value: paths for group, paths in inputs.files.items()}
        return Key(_digest_of([_FORMAT, suite.name, groups]), groups, libraries, files)

    def _digest(self, path: str, read: set[str]) -> str:
        """Of a file that nothing reads as text, without what cannot change a result."""
        if path in read or not path.endswith((".py", ".toml")):
            return self.workspace.digest(path)
        if path.endswith(".py"):
            return self.sources.facts(path).code
        if path not in self._settings:
            self._settings[path] = _digest_of(tomllib.loads(self.workspace.text(path)))
        return self._settings[path]


def _digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
