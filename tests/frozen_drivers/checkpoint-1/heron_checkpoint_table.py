"""The checkpoint store ``table``: objects as rows of an SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import wall_s
from heron.driver_kit.checkpoint_names import check_name, check_prefix, check_range
from heron.driver_kit.os_errors import translated_os_errors
from heron.driver_kit.private_files import check_usable, make_private_dir
from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron.spi.options import decode_options

_TABLE = "create table if not exists objects (name text primary key, at_s real, data blob) without rowid"
_ANOTHER = "choose another checkpoint.folder"


class TableOptions(msgspec.Struct, frozen=True):
    folder: Annotated[str, msgspec.Meta(min_length=1)]


class TableCheckpointStore(CheckpointStore):
    """Each call is one transaction."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files"})
    options_type: ClassVar[type] = TableOptions

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(Path(decode_options(options, TableOptions, "checkpoint").folder).expanduser().absolute())

    def check(self, timeout_s: float) -> str:
        with translated_os_errors(CheckpointError, f"folder {self._folder}: cannot be used", _ANOTHER):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def store(self, name: str, data: bytes) -> None:
        check_name(name)
        with self._table(f"checkpoint object {name}: its {len(data)} bytes cannot be stored") as table:
            table.execute("insert or replace into objects values (?, ?, ?)", (name, wall_s(), data))

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        check_name(name)
        check_range(name, start, size_bytes)
        with self._table(f"checkpoint object {name}: cannot be loaded") as table:
            found = table.execute("select data from objects where name = ?", (name,)).fetchone()
        if found is None:
            raise CheckpointError(f"checkpoint object {name}: does not exist; use another checkpoint")
        data: bytes = found[0]
        check_range(name, start, size_bytes, len(data))
        return data[start:] if size_bytes is None else data[start : start + size_bytes]

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        check_prefix(prefix)
        below = (f"{prefix}/", f"{prefix}0")  # 0 follows / in the order of characters
        with self._table(f"objects below {prefix}: cannot be listed") as table:
            rows = table.execute(
                "select name, length(data), at_s from objects where name > ? and name < ? order by name", below
            ).fetchall()
        return tuple(StoredObject(name, size, max(0.0, wall_s() - at_s)) for name, size, at_s in rows)

    def dispose(self, names: Iterable[str]) -> None:
        disposed = list(names)
        for name in disposed:
            check_name(name)
        with self._table(f"{len(disposed)} checkpoint objects cannot be removed") as table:
            table.executemany("delete from objects where name = ?", ((name,) for name in disposed))

    @contextmanager
    def _table(self, what: str) -> Iterator[sqlite3.Connection]:
        try:
            with translated_os_errors(CheckpointError, what, _ANOTHER):
                make_private_dir(self._folder)
            with contextlib.closing(sqlite3.connect(self._folder / "objects.db", timeout=20)) as table, table:
                table.execute(_TABLE)
                yield table
        except sqlite3.Error as error:
            raise CheckpointError(f"{what}: {error}; check the file in {self._folder}, or {_ANOTHER}") from error
