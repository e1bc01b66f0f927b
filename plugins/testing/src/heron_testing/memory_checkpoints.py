"""A checkpoint store in memory, for tests of what the engine does with any store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Self

from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron_driver_kit.checkpoint_names import check_name, check_prefix, check_range

__all__ = ["MemoryCheckpointStore"]


class MemoryCheckpointStore(CheckpointStore):
    """Keeps objects in `objects`, and the time of each store by `now_s`, which a test advances.

    A test that sets `refusal` makes every call fail with that text.
    """

    spi_version: ClassVar[int] = 1

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.stored_at_s: dict[str, float] = {}
        self.now_s = 0.0
        self.refusal = ""

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Return an empty store."""
        return cls()

    def store(self, name: str, data: bytes) -> None:
        """Keep the object."""
        self._check()
        check_name(name)
        self.objects[name] = data
        self.stored_at_s[name] = self.now_s

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """Return the range."""
        self._check()
        check_name(name)
        if name not in self.objects:
            msg = f"checkpoint object {name}: does not exist"
            raise CheckpointError(msg)
        data = self.objects[name]
        check_range(name, start, size_bytes, len(data))
        return data[start:] if size_bytes is None else data[start : start + size_bytes]

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """List the objects below the prefix."""
        self._check()
        check_prefix(prefix)
        return tuple(
            StoredObject(name, len(self.objects[name]), self.now_s - self.stored_at_s[name])
            for name in sorted(self.objects)
            if name.startswith(f"{prefix}/")
        )

    def dispose(self, names: Iterable[str]) -> None:
        """Forget the objects, one after the other."""
        for name in names:
            self._check()
            check_name(name)
            self.objects.pop(name, None)

    def _check(self) -> None:
        if self.refusal:
            raise CheckpointError(self.refusal)
