"""A store of views in memory: the reference for stores, and a store for tests in one process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import msgspec

from heron.errors import StoreError
from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore

__all__ = ["MemoryViewStore"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


class _Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""


@dataclass(slots=True)
class _View:
    live: dict[SpanKey, tuple[int, bytes]] = field(default_factory=dict)
    staged: dict[int, dict[int, dict[SpanKey, bytes]]] = field(default_factory=dict)
    published_us: dict[int, int] = field(default_factory=dict)
    batch: Batch | None = None
    history: dict[bytes, bytes] = field(default_factory=dict)
    staged_batches: dict[Batch, dict[bytes, bytes]] = field(default_factory=dict)
    parts: dict[Batch, set[int]] = field(default_factory=dict)


class MemoryViewStore(ViewStore):
    """Views of this process. Stores that were opened with the same option `name` are one store.

    Attributes:
        staged_values: how many values of live spans were staged, for tests of caches.
    """

    spi_version = 1
    options_type = _Options
    stores: ClassVar[dict[str, Self]] = {}

    def __init__(self) -> None:
        self._views: dict[str, _View] = {}
        self.staged_values = 0

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """`Driver.open`."""
        name = decode_options(options, _Options, "store").name
        return cls.stores.setdefault(name, cls()) if name else cls()

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """`ViewStore.stage`."""
        for _, key in values:
            _check_key(view, key)
        self.staged_values += len(values)
        self._view(view).staged.setdefault(writer, {}).setdefault(version, {}).update(values)

    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """`ViewStore.publish`."""
        found = self._view(view)
        self._show(found, writer, version)
        found.published_us[writer] = at_us

    def discard(self, view: str, writer: int, above: int) -> None:
        """`ViewStore.discard`."""
        staged = self._view(view).staged.get(writer, {})
        for version in [each for each in staged if each > above]:
            del staged[version]

    def retire(self, view: str, writers: int, version: int) -> None:
        """`ViewStore.retire`."""
        found = self._view(view)
        for writer in [each for each in {*found.staged, *found.published_us} if each >= writers]:
            self._show(found, writer, version)
            found.staged.pop(writer, None)
            found.published_us.pop(writer, None)

    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """`ViewStore.stage_batch`."""
        found = self._view(view)
        _check_batch(view, found, batch)
        for key in values:
            _check_key(view, key)
        if batch != found.batch:
            found.staged_batches.setdefault(batch, {}).update(values)

    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """`ViewStore.publish_batch`."""
        found = self._view(view)
        _check_batch(view, found, batch)
        if batch == found.batch:
            return
        complete = found.parts.setdefault(batch, set())
        complete.add(part)
        if len(complete) < parts:
            return
        found.batch, found.history = batch, found.staged_batches.get(batch, {})
        for each in [each for each in {*found.staged_batches, *found.parts} if each.until_us <= batch.until_us]:
            found.staged_batches.pop(each, None)
            found.parts.pop(each, None)
        found.live = {place: each for place, each in found.live.items() if place[0] >= batch.until_us}

    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """`ViewStore.read`."""
        found, wanted = self._view(view), set(keys)
        until_us = None if found.batch is None else found.batch.until_us
        live: dict[bytes, list[bytes]] = {}
        for (start_us, key), (_, value) in sorted(found.live.items()):
            if key in wanted and (until_us is None or start_us >= until_us):
                live.setdefault(key, []).append(value)
        history = {key: found.history[key] for key in wanted if key in found.history}
        return Reading(until_us, history, live, min(found.published_us.values(), default=None))

    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """`ViewStore.keys`."""
        found = self._view(view)
        until_us = 0 if found.batch is None else found.batch.until_us
        live = {key for start_us, key in found.live if found.batch is None or start_us >= until_us}
        return [key for key in sorted({*found.history, *live}) if key > after][:limit]

    def drop(self, view: str) -> None:
        """`ViewStore.drop`."""
        self._view(view)
        del self._views[view]

    def _view(self, view: str) -> _View:
        if not _NAME.fullmatch(view):
            msg = f"view {view!r:.120}: the name is not 1 to 100 letters, digits, '_' and '-'"
            raise StoreError(msg)
        return self._views.setdefault(view, _View())

    @staticmethod
    def _show(found: _View, writer: int, version: int) -> None:
        staged = found.staged.get(writer, {})
        for each in sorted(each for each in staged if each <= version):
            for place, value in staged.pop(each).items():
                if place not in found.live or found.live[place][0] <= each:
                    found.live[place] = (each, value)


def _check_key(view: str, key: bytes) -> None:
    if not 1 <= len(key) <= 1024:
        msg = f"view {view!r}: a key of {len(key)} bytes; keys have 1 to 1,024 bytes"
        raise StoreError(msg)


def _check_batch(view: str, found: _View, batch: Batch) -> None:
    if found.batch is not None and found.batch.until_us > batch.until_us:
        shown_us = found.batch.until_us
        msg = f"view {view!r}: the batch until {batch.until_us} µs is older than the visible one, until {shown_us} µs"
        raise StoreError(msg)
