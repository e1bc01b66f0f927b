"""An upload in parts. If its process is killed, another upload can continue it.

    ROOT/.NAME-DIGEST.tar.gz.parts-HOME-PID-TOKEN/    the parts of one upload
        0000000000000000, …                           a complete part, named by its offset
        new-TOKEN                                     a part that is being sent

- The name node joins the parts and renames the result, so the package is complete or absent.
- A folder of parts belongs to one upload. Another upload renames an abandoned folder before it continues. If several
  uploads try, only one rename succeeds.
- A folder is abandoned when its process has ended, or when it has not changed for an hour (`heron_hdfs_kit.owner`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from heron.errors import PackageError
from heron_driver_kit.packages import CHUNK_BYTES, InterruptedTransferError, translated_errors
from heron_hdfs_kit.owner import OWNER, is_dead, new_owner
from heron_hdfs_kit.web_hdfs import Entry, WebHdfs

__all__ = ["PARTS", "Parts", "is_abandoned"]

PARTS = re.compile(rf"\.(?P<file>.+\.tar\.gz)\.parts-{OWNER}")
"""The name of a folder of parts; ``file`` is the later name of the package."""

_ATTEMPTS = 5  # for one part; a proxy that cuts it five times, for example at a size, would always cut it


class Parts:
    """The parts of one package during its upload."""

    def __init__(self, hdfs: WebHdfs, root: str, file: str, part_bytes: int) -> None:
        """Create the folder of parts, or take over the folder of an abandoned upload of the same content."""
        self._hdfs = hdfs
        self._part_bytes = part_bytes
        self._folder = new = f"{root}/{_own_name(file)}"
        hdfs.make_folder(new)
        entries = hdfs.entries(root)
        now_ms = max((each.modified_ms for each in entries), default=0)
        for each in entries:
            match = PARTS.fullmatch(each.name)
            if match is None or match["file"] != file or not is_abandoned(each, now_ms):
                continue
            if self._folder != new:
                hdfs.remove(f"{root}/{each.name}")
            elif hdfs.move(f"{root}/{each.name}", taken := f"{root}/{_own_name(file)}"):
                self._folder = taken
        if self._folder != new:
            hdfs.remove(new)

    def send(self, package: Path, size_bytes: int, moved: Callable[[int, int], None]) -> str:
        """Send the missing parts, join all parts, and return the path of the result."""
        whole = self._path(0)
        have = {each.name: each.size_bytes for each in self._hdfs.entries(self._folder)}
        if size_bytes > self._part_bytes and have.get(_part_name(0)) == size_bytes:
            return whole  # the abandoned upload had already joined the parts
        offsets = range(0, size_bytes, self._part_bytes) or range(1)
        for offset in offsets:
            length = min(self._part_bytes, size_bytes - offset)
            if have.get(_part_name(offset)) != length:
                self._send_part(package, offset, length)
            moved(offset + length, size_bytes)
        if len(offsets) > 1:
            self._hdfs.join(whole, [self._path(offset) for offset in offsets[1:]])
        stored = self._hdfs.entry(whole)
        if stored is None or stored.size_bytes != size_bytes:
            found = "is missing" if stored is None else f"has {stored.size_bytes} of {size_bytes} bytes"
            msg = (
                f"package {package}: the stored file {whole} in HDFS at {self._hdfs.url} {found}; "
                "submit the topology again"
            )
            raise PackageError(msg)
        return whole

    def discard(self) -> None:
        """Remove the folder of parts."""
        self._hdfs.remove(self._folder)

    def _send_part(self, package: Path, offset: int, length: int) -> None:
        """Send a part. After an interruption it is sent again, in at most five attempts, if bytes have moved."""
        for attempt in range(1, _ATTEMPTS + 1):
            new = f"{self._folder}/new-{secrets.token_hex(8)}"
            slice_ = _Slice(package, offset, length)
            try:
                self._hdfs.write(new, slice_)
                self._hdfs.move(new, self._path(offset), replace=True)
            except InterruptedTransferError:
                if attempt == _ATTEMPTS or not slice_.moved_bytes:
                    raise
            else:
                return

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{_part_name(offset)}"


class _Slice:
    """A part of a file, read in chunks."""

    def __init__(self, path: Path, offset: int, length: int) -> None:
        self.moved_bytes = 0
        """The bytes that were taken, without the last chunk: the system buffers a chunk before the server has it."""
        self._path = path
        self._offset = offset
        self._length = length

    def __iter__(self) -> Iterator[bytes]:
        what = f"package {self._path}"
        with translated_errors(f"{what}: cannot be read", "build it again"), self._path.open("rb") as file:
            file.seek(self._offset)
            left = self._length
            while left:
                chunk = file.read(min(CHUNK_BYTES, left))
                if not chunk:
                    msg = f"{what}: changed while it was uploaded; build it again"
                    raise PackageError(msg)
                left -= len(chunk)
                yield chunk
                self.moved_bytes += len(chunk)


def is_abandoned(parts: Entry, now_ms: int) -> bool:
    """Whether no running upload owns the folder of parts; False for every other entry."""
    match = PARTS.fullmatch(parts.name)
    return match is not None and parts.is_folder and is_dead(match.groupdict(), parts.modified_ms, now_ms)


def _own_name(file: str) -> str:
    return f".{file}.parts-{new_owner()}"


def _part_name(offset: int) -> str:
    return f"{offset:016d}"
