"""Stores checkpoints as files in HDFS.

An object is written to a hidden partial file in its folder. The name node then renames it in one step, so an object is
complete or absent. `dispose` removes the partial files of dead processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Self

from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron.spi.options import decode_options
from heron_driver_kit.checkpoint_names import check_name, check_prefix, check_range, is_name
from heron_driver_kit.packages import CHUNK_BYTES
from heron_hdfs_kit.owner import OWNER, is_dead, new_owner
from heron_hdfs_kit.place import HdfsPlace, HdfsRoot
from heron_hdfs_kit.web_hdfs import Entry, HdfsErrors, WebHdfs

__all__ = ["ERRORS", "HdfsCheckpointStore", "HdfsOptions"]

_PARTIAL = re.compile(rf"\..+\.part-{OWNER}")
_LOADS = 5  # each lost one means that another store replaced the object just then


class _UnansweredError(CheckpointError):
    """HDFS did not answer, or the connection broke."""


ERRORS = HdfsErrors(
    section="checkpoint",
    space="delete checkpoints with `heron checkpoints`",
    again="use another checkpoint",
    refused=CheckpointError,
    unanswered=_UnansweredError,
)


class HdfsOptions(HdfsPlace, frozen=True):
    """The driver's section of a profile."""

    root: HdfsRoot = "/heron/checkpoints"


class HdfsCheckpointStore(CheckpointStore):
    """Objects below a folder of HDFS, for containers on every machine that can reach HDFS."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server", "shared"})
    options_type: ClassVar[type] = HdfsOptions

    def __init__(self, options: HdfsOptions) -> None:
        self._options = options
        self._root = options.root

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects."""
        return cls(decode_options(options, HdfsOptions, "checkpoint"))

    def check(self, timeout_s: float) -> str:
        """Check that HDFS answers, and that the root is a folder or missing."""
        return self._options.check(ERRORS, timeout_s, "checkpoint")

    def store(self, name: str, data: bytes) -> None:
        """Write the file beside its place, and rename it."""
        check_name(name)
        folder, _, last = f"{self._root}/{name}".rpartition("/")
        partial = f"{folder}/.{last}.part-{new_owner()}"
        with self._hdfs() as hdfs:
            hdfs.make_folder(folder)
            hdfs.write(partial, _chunks(data))
            if not hdfs.move(partial, f"{folder}/{last}", replace=True):
                msg = f"checkpoint object {folder}/{last} in HDFS at {hdfs.url}: its partial file is gone; try again"
                raise CheckpointError(msg)

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """Read the range of the file; read it again if another store has replaced the object meanwhile."""
        check_name(name)
        check_range(name, start, size_bytes)
        path = f"{self._root}/{name}"
        with self._hdfs() as hdfs:
            for _ in range(_LOADS):
                found = hdfs.entry(path)
                if found is None or found.is_folder:
                    msg = f"checkpoint object {path} in HDFS at {hdfs.url}: not found; {ERRORS.again}"
                    raise CheckpointError(msg)
                check_range(name, start, size_bytes, found.size_bytes)
                wanted = found.size_bytes - start if size_bytes is None else size_bytes
                # HDFS refuses to read from the end of a file on, so it refuses every read of an empty file.
                data = b"".join(hdfs.read(path, start, size_bytes)) if wanted else b""
                if len(data) == wanted:
                    return data
            msg = f"checkpoint object {path} in HDFS at {hdfs.url}: another process replaces it again and again"
            raise CheckpointError(msg)

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """List the files below the folder."""
        check_prefix(prefix)
        with self._hdfs() as hdfs:
            found = [each for each in _below(hdfs, f"{self._root}/{prefix}") if not each[1].is_folder]
            now_ms = max((hdfs.now_ms(), *(entry.modified_ms for _, entry in found)))
        objects = (
            StoredObject(path.removeprefix(f"{self._root}/"), entry.size_bytes, (now_ms - entry.modified_ms) / 1000)
            for path, entry in found
        )
        return tuple(sorted((each for each in objects if is_name(each.name)), key=lambda each: each.name))

    def dispose(self, names: Iterable[str]) -> None:
        """Remove the files, then partial files of dead processes and empty folders beside them."""
        above = set()
        with self._hdfs() as hdfs:
            for name in names:
                check_name(name)
                hdfs.remove(f"{self._root}/{name}")
                folders = name.split("/")[:-1]
                above.add("/".join(folders[:-1] or folders))
            for folder in sorted(above):
                self._clean_up(hdfs, folder)

    def _hdfs(self) -> WebHdfs:
        return self._options.connected(ERRORS)

    def _clean_up(self, hdfs: WebHdfs, below: str) -> None:
        found = list(_below(hdfs, f"{self._root}/{below}"))
        now_ms = max((hdfs.now_ms(), *(entry.modified_ms for _, entry in found)))
        for path, entry in found:
            partial = _PARTIAL.fullmatch(entry.name)
            if partial and is_dead(partial.groupdict(), entry.modified_ms, now_ms):
                hdfs.remove(path)
        folders = [path for path, entry in found if entry.is_folder]
        parts = below.split("/")
        folders += [f"{self._root}/{'/'.join(parts[: end + 1])}" for end in range(len(parts))]
        for folder in sorted(folders, key=len, reverse=True):
            hdfs.remove_if_empty(folder)


def _below(hdfs: WebHdfs, folder: str) -> Iterator[tuple[str, Entry]]:
    """Yield the path and entry of all files and folders below a folder; none when it does not exist."""
    for each in hdfs.entries(folder):
        if each.name:  # HDFS lists a file as a folder with one entry without a name
            yield f"{folder}/{each.name}", each
            if each.is_folder:
                yield from _below(hdfs, f"{folder}/{each.name}")


def _chunks(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(data), CHUNK_BYTES):
        yield bytes(view[start : start + CHUNK_BYTES])
