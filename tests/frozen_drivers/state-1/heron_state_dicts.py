"""The state backend ``dicts``: entries in memory, with a limit for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.errors import KeyedStateError
from heron.spi.options import decode_options
from heron.spi.state import StateBackend, StateView, TaskStore

_Part = dict[bytes, bytes]


class DictOptions(msgspec.Struct, frozen=True):
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1 << 33


class DictStateBackend(StateBackend):
    """Limits the bytes of keys and values of each task."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = DictOptions

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, DictOptions, "state").max_bytes)

    def create(self, folder: Path) -> TaskStore:
        return _Dicts(self._max_bytes)


class _Dicts(TaskStore):
    """A view shares the dicts of parts; a write copies those that a view may have."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._parts: dict[int, _Part] = {}
        self._shared: set[int] = set()

    def get(self, part: int, key: bytes) -> bytes | None:
        return self._parts.get(part, {}).get(key)

    def write(self, changes: Mapping[tuple[int, bytes], bytes | None]) -> None:
        growth = sum(_size(key, value) - _size(key, self.get(part, key)) for (part, key), value in changes.items())
        if self._bytes + growth > self._max_bytes:
            raise KeyedStateError(
                f"the state of a task would exceed the limit of {self._max_bytes} bytes (state.max_bytes); raise it"
            )
        self._bytes += growth
        for (part, key), value in changes.items():
            entries = self._own(part)
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value

    def drop(self, part: int) -> None:
        self._bytes -= sum(_size(key, value) for key, value in self._parts.pop(part, {}).items())
        self._shared.discard(part)

    def view(self) -> StateView:
        self._shared = set(self._parts)
        return _View(dict(self._parts))

    def close(self) -> None:
        self._parts.clear()

    def _own(self, part: int) -> _Part:
        if part in self._shared:
            self._shared.discard(part)
            self._parts[part] = dict(self._parts[part])
        return self._parts.setdefault(part, {})


class _View(StateView):
    def __init__(self, parts: dict[int, _Part]) -> None:
        self._parts = parts

    def scan(self, part: int) -> Iterator[tuple[bytes, bytes]]:
        yield from self._parts.get(part, {}).items()

    def close(self) -> None:
        self._parts.clear()


def _size(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)
