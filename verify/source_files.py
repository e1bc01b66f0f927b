"""What is read from each Python file, kept by content, so that a file is parsed once and not in each call."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from functools import cached_property
from pathlib import Path

import msgspec

from verify.source_facts import SourceFacts, source_facts
from verify.workspace import Workspace

__all__ = ["SourceFiles"]

_READERS = ("runtime_code.py", "source_facts.py")
_NOT_PYTHON = SourceFacts()


class SourceFiles:
    """The facts of the files of a workspace, from `cache` where it has them; without `cache` nothing is kept."""

    def __init__(self, workspace: Workspace, cache: Path | None = None) -> None:
        self._workspace = workspace
        self._cache = cache
        self._facts: dict[str, SourceFacts] = {}
        self._parsed = False

    def facts(self, path: str) -> SourceFacts:
        """The facts of a file of the workspace; a file that is not Python has none."""
        if not path.endswith(".py"):
            return _NOT_PYTHON
        if path not in self._facts:
            facts = self._kept.get(self._workspace.digest(path))
            if facts is None:
                facts = source_facts(self._workspace.text(path))
                self._parsed = True
            self._facts[path] = facts
        return self._facts[path]

    def save(self) -> None:
        """Writes the facts of the files that were asked for, if one of them was parsed."""
        if self._cache is None or not self._parsed:
            return
        facts = {self._workspace.digest(path): facts for path, facts in self._facts.items()}
        if len(self._kept) < 2 * len(facts):  # what other branches have; else the file grows with each edit
            facts |= self._kept
        content = msgspec.msgpack.encode(facts)
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as file:
            file.write(content)
        Path(file.name).replace(self._cache / self._name)
        self._parsed = False

    @cached_property
    def _name(self) -> str:
        """Changes with the interpreter and with the modules that find the facts."""
        code = b"".join(Path(__file__).with_name(name).read_bytes() for name in _READERS)
        return f"{sys.version_info[0]}.{sys.version_info[1]}-{hashlib.sha256(code).hexdigest()[:16]}"

    @cached_property
    def _kept(self) -> dict[str, SourceFacts]:
        if self._cache is None:
            return {}
        try:
            return msgspec.msgpack.decode((self._cache / self._name).read_bytes(), type=dict[str, SourceFacts])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}
