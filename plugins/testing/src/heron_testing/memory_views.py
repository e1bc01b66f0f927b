"""A store of views in memory: the reference for the suite of the family, and for tests of what uses a store."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Concatenate, ParamSpec, Self, TypeVar

from heron.spi.driver import NoOptions
from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore
from heron_driver_kit.view_names import check_batch, check_entries, check_key, check_view, later_batch, removed_batch

__all__ = ["MemoryViewStore"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class _View:
    staged: dict[tuple[int, int], dict[SpanKey, bytes]] = field(default_factory=dict)  # by version and writer
    live: dict[SpanKey, tuple[int, bytes]] = field(default_factory=dict)  # version and value
    times: dict[int, int] = field(default_factory=dict)
    batch: Batch | None = None
    history: dict[bytes, bytes] = field(default_factory=dict)
    hidden: dict[Batch, dict[bytes, bytes]] = field(default_factory=dict)
    complete: dict[Batch, set[int]] = field(default_factory=dict)
    removed: set[Batch] = field(default_factory=set)

    def shows(self, span_us: int) -> bool:
        return self.batch is None or span_us >= self.batch.until_us


def _at_once(
    method: Callable[Concatenate[MemoryViewStore, P], R],
) -> Callable[Concatenate[MemoryViewStore, P], R]:
    @functools.wraps(method)
    def locked(store: MemoryViewStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with store.lock:
            return method(store, *args, **kwargs)

    return locked


class MemoryViewStore(ViewStore):
    """Views in dicts, for the threads of one process. They are lost with the object."""

    spi_version: ClassVar[int] = 1

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._views: dict[str, _View] = {}

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Make an empty store; it has no options."""
        decode_options(options, NoOptions, "store")
        return cls()

    @_at_once
    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """Keep the values apart."""
        check_entries(view, ((key, value) for (_, key), value in values.items()))
        self._made(view).staged.setdefault((version, writer), {}).update(values)

    @_at_once
    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """Move the values; times only grow, since a repetition may come late."""
        found = self._made(view)
        self._show(found, [each for each in found.staged if each[1] == writer and each[0] <= version])
        found.times[writer] = max(at_us, found.times.get(writer, at_us))

    @_at_once
    def discard(self, view: str, writer: int, above: int) -> None:
        """Forget the values."""
        found = self._made(view)
        for each in [each for each in found.staged if each[1] == writer and each[0] > above]:
            del found.staged[each]

    @_at_once
    def retire(self, view: str, writers: int, version: int) -> None:
        """Show or forget the values, and forget the times."""
        found = self._made(view)
        gone = [each for each in found.staged if each[1] >= writers]
        self._show(found, [each for each in gone if each[0] <= version])
        for each in gone:
            found.staged.pop(each, None)
        found.times = {writer: at_us for writer, at_us in found.times.items() if writer < writers}

    @_at_once
    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """Keep the values apart, by batch: parts have no keys in common."""
        del part
        check_entries(view, values.items())
        found = self._made(view)
        if self._is_open(view, batch):
            found.hidden.setdefault(batch, {}).update(values)

    @_at_once
    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """Count the parts; exchange the dicts when all are there."""
        found = self._made(view)
        if not self._is_open(view, batch):
            return
        complete = found.complete.setdefault(batch, set())
        complete.add(part)
        if len(complete) < parts:
            return
        ended = {each for each in {*found.hidden, *found.complete} if each.until_us <= batch.until_us}
        known = found.removed | ended | ({found.batch} if found.batch else set())
        found.removed = {each for each in known if each.until_us == batch.until_us and each != batch}
        found.batch, found.history = batch, found.hidden.get(batch, {})
        for each in ended:
            found.hidden.pop(each, None)
            found.complete.pop(each, None)
        found.live = {place: kept for place, kept in found.live.items() if found.shows(place[0])}

    @_at_once
    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """Look the keys up."""
        check_view(view)
        found, wanted = self._views.get(view, _View()), set(keys)
        for key in wanted:
            check_key(view, key)
        live: dict[bytes, list[bytes]] = {}
        for place in sorted(found.live):
            if place[1] in wanted:
                live.setdefault(place[1], []).append(found.live[place][1])
        return Reading(
            found.batch.until_us if found.batch else None,
            {key: value for key, value in found.history.items() if key in wanted},
            live,
            min(found.times.values(), default=None),
        )

    @_at_once
    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """Sort all keys."""
        check_view(view)
        found = self._views.get(view, _View())
        every = {*found.history, *(key for _, key in found.live)}
        return sorted(key for key in every if key > after)[:limit]

    @_at_once
    def drop(self, view: str) -> None:
        """Forget the view."""
        check_view(view)
        self._views.pop(view, None)

    def _made(self, view: str) -> _View:
        check_view(view)
        return self._views.setdefault(view, _View())

    def _is_open(self, view: str, batch: Batch) -> bool:
        """Whether the batch may still become visible; False when it is visible."""
        check_batch(view, batch)
        found = self._made(view)
        if found.batch is not None and found.batch.until_us > batch.until_us:
            raise later_batch(view, batch, found.batch.until_us)
        if batch in found.removed:
            raise removed_batch(view, batch)
        return batch != found.batch

    def _show(self, found: _View, places: Iterable[tuple[int, int]]) -> None:
        for version, writer in sorted(places):
            for place, value in found.staged.pop((version, writer)).items():
                if found.shows(place[0]) and found.live.get(place, (version,))[0] <= version:
                    found.live[place] = (version, value)
