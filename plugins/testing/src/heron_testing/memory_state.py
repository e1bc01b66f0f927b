"""A state backend in memory: the reference for the suite of the family, and for tests of keyed state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heron.spi.state import StateView, TaskStore

__all__ = ["MemoryTaskStore"]

_Parts = dict[int, dict[bytes, bytes]]


class _MemoryView(StateView):
    def __init__(self, parts: _Parts) -> None:
        self._parts = {part: dict(entries) for part, entries in parts.items()}

    def scan(self, part: int) -> Iterator[tuple[bytes, bytes]]:
        yield from self._parts.get(part, {}).items()

    def close(self) -> None:
        pass


class MemoryTaskStore(TaskStore):
    """Entries in dicts; a view copies them."""

    def __init__(self) -> None:
        self._parts: _Parts = {}

    def get(self, part: int, key: bytes) -> bytes | None:
        """Look the key up."""
        return self._parts.get(part, {}).get(key)

    def write(self, changes: Mapping[tuple[int, bytes], bytes | None]) -> None:
        """Change the dicts."""
        for (part, key), value in changes.items():
            if value is None:
                self._parts.get(part, {}).pop(key, None)
            else:
                self._parts.setdefault(part, {})[key] = value

    def drop(self, part: int) -> None:
        """Forget the dict of the part."""
        self._parts.pop(part, None)

    def view(self) -> StateView:
        """Copy the dicts."""
        return _MemoryView(self._parts)

    def close(self) -> None:
        """Forget the dicts."""
        self._parts.clear()
