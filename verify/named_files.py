"""The files that the text of another file names: data, pages, programs that a test starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from verify.import_graph import ImportGraph

__all__ = ["NamedFiles"]

_MANY = 5  # a name such as pyproject.toml, which more files than this have, names none of them


class NamedFiles:
    """Finds which of `candidates` a file names."""

    def __init__(self, graph: ImportGraph, candidates: Iterable[str]) -> None:
        self._graph = graph
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        for path in candidates:
            self._by_name[path.rpartition("/")[2]].append(path)
        self._found: dict[str, frozenset[str]] = {}

    def named(self, path: str) -> frozenset[str]:
        """The candidates that strings of a file name: from the root, or by the end of their path."""
        if path not in self._found:
            texts = self._graph.facts(path).paths
            self._found[path] = frozenset(each for text in texts for each in self._matching(text))
        return self._found[path]

    def _matching(self, text: str) -> list[str]:
        name = text.rpartition("/")[2]
        candidates = self._by_name.get(name, [])
        if text.startswith("/"):
            return [each for each in candidates if f"/{each}" == text]
        if "." not in name or (text == name and len(candidates) > _MANY):
            return []
        return [each for each in candidates if f"/{each}".endswith(f"/{text}")]
