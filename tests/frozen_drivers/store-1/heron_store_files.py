"""The store ``files``: each view is one file, which a change replaces."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.driver_kit.os_errors import translated_os_errors
from heron.driver_kit.private_files import check_usable, make_private_dir, write_private
from heron.driver_kit.view_names import check_batch, check_entries, check_key, check_view, later_batch, removed_batch
from heron.errors import StoreError
from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore

_ANOTHER = "choose another store.folder"


class FileOptions(msgspec.Struct, frozen=True):
    folder: Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(slots=True)
class _Content:
    staged: dict[tuple[int, int], dict[SpanKey, bytes]] = field(default_factory=dict)  # by version and writer
    live: dict[SpanKey, tuple[int, bytes]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    visible: Batch | None = None
    history: dict[bytes, bytes] = field(default_factory=dict)
    hidden: dict[Batch, dict[bytes, bytes]] = field(default_factory=dict)
    complete: dict[Batch, set[int]] = field(default_factory=dict)
    removed: set[Batch] = field(default_factory=set)

    def shows(self, span_us: int) -> bool:
        return self.visible is None or span_us >= self.visible.until_us

    def show(self, places: Iterable[tuple[int, int]]) -> None:
        for place in sorted(places):
            version = place[0]
            for span, value in self.staged.pop(place).items():
                if self.shows(span[0]) and self.live.get(span, (version,))[0] <= version:
                    self.live[span] = (version, value)

    def is_open(self, view: str, batch: Batch) -> bool:
        if self.visible is not None and self.visible.until_us > batch.until_us:
            raise later_batch(view, batch, self.visible.until_us)
        if batch in self.removed:
            raise removed_batch(view, batch)
        return batch != self.visible


class FileViewStore(ViewStore):
    """For small views: each call reads and writes the whole file."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = FileOptions

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(Path(decode_options(options, FileOptions, "store").folder).expanduser().absolute())

    def check(self, timeout_s: float) -> str:
        with translated_os_errors(StoreError, f"folder {self._folder}: cannot be used", _ANOTHER):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        check_entries(view, ((key, value) for (_, key), value in values.items()))
        with self._changing(view) as content:
            content.staged.setdefault((version, writer), {}).update(values)

    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        with self._changing(view) as content:
            content.show([each for each in content.staged if each[1] == writer and each[0] <= version])
            content.times[writer] = max(at_us, content.times.get(writer, at_us))

    def discard(self, view: str, writer: int, above: int) -> None:
        with self._changing(view) as content:
            for each in [each for each in content.staged if each[1] == writer and each[0] > above]:
                del content.staged[each]

    def retire(self, view: str, writers: int, version: int) -> None:
        with self._changing(view) as content:
            content.show([each for each in content.staged if each[1] >= writers and each[0] <= version])
            content.staged = {place: values for place, values in content.staged.items() if place[1] < writers}
            content.times = {writer: at_us for writer, at_us in content.times.items() if writer < writers}

    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        check_batch(view, batch)
        check_entries(view, values.items())
        with self._changing(view) as content:
            if content.is_open(view, batch):
                content.hidden.setdefault(batch, {}).update(values)

    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        check_batch(view, batch)
        with self._changing(view) as content:
            if not content.is_open(view, batch):
                return
            complete = content.complete.setdefault(batch, set())
            complete.add(part)
            if len(complete) >= parts:
                _exchange(content, batch)

    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        content, wanted = self._content(view), set(keys)
        for key in wanted:
            check_key(view, key)
        live: dict[bytes, list[bytes]] = {}
        for span in sorted(each for each in content.live if each[1] in wanted):
            live.setdefault(span[1], []).append(content.live[span][1])
        return Reading(
            content.visible.until_us if content.visible else None,
            {key: value for key, value in content.history.items() if key in wanted},
            live,
            min(content.times.values(), default=None),
        )

    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        content = self._content(view)
        every = {*content.history, *(key for _, key in content.live)}
        return sorted(key for key in every if key > after)[:limit]

    def drop(self, view: str) -> None:
        path = self._path(view)
        with self._errors(path):
            path.unlink(missing_ok=True)

    def _path(self, view: str) -> Path:
        check_view(view)
        return self._folder / f"{view}.view"

    def _content(self, view: str) -> _Content:
        path = self._path(view)
        with self._errors(path):
            try:
                content = pickle.loads(path.read_bytes())
            except FileNotFoundError:
                content = _Content()
        assert isinstance(content, _Content)
        return content

    @contextmanager
    def _changing(self, view: str) -> Iterator[_Content]:
        path = self._path(view)
        with self._errors(path):
            make_private_dir(self._folder)
            descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                content = self._content(view)
                yield content
                write_private(path, pickle.dumps(content))
            finally:
                os.close(descriptor)

    @contextmanager
    def _errors(self, path: Path) -> Iterator[None]:
        with translated_os_errors(StoreError, f"view {path.stem} in {path}", _ANOTHER):
            yield


def _exchange(content: _Content, batch: Batch) -> None:
    ended = {each for each in (*content.hidden, *content.complete) if each.until_us <= batch.until_us}
    known = {*content.removed, *ended, *([content.visible] if content.visible else [])}
    content.removed = {each for each in known if each.until_us == batch.until_us and each != batch}
    content.visible, content.history = batch, content.hidden.get(batch, {})
    for each in ended:
        content.hidden.pop(each, None)
        content.complete.pop(each, None)
    content.live = {span: value for span, value in content.live.items() if content.shows(span[0])}
