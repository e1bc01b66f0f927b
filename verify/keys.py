"""The key of a suite: one digest over its inputs, and one for each group of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from verify.import_graph import ImportGraph
from verify.inputs import Group, InputFinder
from verify.pins import needed_pins, read_pins, required_by
from verify.suites import Suite, find_suites
from verify.workspace import Workspace

__all__ = ["Key", "KeyFinder"]

_FORMAT = 1
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

    def __init__(self, workspace: Workspace, required: Callable[[str], list[str]] = required_by) -> None:
        self.workspace = workspace
        self._required = required
        self._pins = read_pins(workspace.text("constraints.txt"))
        self._digests: dict[str, str] = {}
        self.graph = ImportGraph(workspace)
        self._inputs = InputFinder(workspace, self.graph)
        self.suites: list[Suite] = find_suites(workspace, self.graph)

    def key(self, suite: Suite) -> Key:
        """The present key of a suite."""
        inputs = self._inputs.inputs(suite)
        libraries = needed_pins(inputs.requires, self._pins, self._required)
        contents: dict[str, dict[str, str]] = {
            group.value: {path: self._digest(path) for path in paths} for group, paths in inputs.files.items()
        }
        contents[Group.LIBRARIES.value] = libraries
        contents[Group.TESTS.value]["[tool.pytest]"] = self.workspace.pytest_settings
        groups = {group: _digest_of(content) for group, content in sorted(contents.items())}
        files = {group.value: paths for group, paths in inputs.files.items()}
        return Key(_digest_of([_FORMAT, suite.name, groups]), groups, libraries, files)

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = self.workspace.digest(path)
        return self._digests[path]


def _digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
