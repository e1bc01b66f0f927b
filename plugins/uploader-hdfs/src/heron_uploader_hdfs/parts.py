"""An upload in parts, which another one can go on with when it was killed.

    ROOT/.NAME-DIGEST.tar.gz.parts-HOME-PID-TOKEN/    the parts of one upload
        0000000000000000, …                           a part that is whole, by its offset
        new-TOKEN                                     a part that is on its way

Parts are joined and renamed by the name node alone, so the package appears under its name whole or not at all. A folder
of parts belongs to one upload: who goes on with an abandoned one renames it first, which one of many can do. It is
abandoned when its process is gone (HOME names machine and process namespace), or when nothing came into it for an hour,
by the clock of HDFS.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from heron.driver_kit.packages import CHUNK_BYTES, InterruptedTransferError, translated_errors
from heron.errors import PackageError
from heron_uploader_hdfs.web_hdfs import Entry, WebHdfs

__all__ = ["PARTS", "Parts", "home", "is_abandoned"]

PARTS = re.compile(r"\.(?P<file>.+\.tar\.gz)\.parts-(?P<home>[0-9a-f]{8})-(?P<pid>\d{1,10})-[0-9a-f]{16}")
"""The name of a folder of parts; ``file`` is the name that the package will have."""

_ATTEMPTS = 5  # of one part; what cuts it that often, a proxy with a limit of its own, cuts it for ever
_ABANDONED_MS = 3_600_000  # a part that takes longer is of an upload that somebody will have given up


class Parts:
    """The parts of one package on their way to `target`."""

    def __init__(self, hdfs: WebHdfs, root: str, file: str, part_bytes: int) -> None:
        """Takes over what an abandoned upload of the same content left, if there is such."""
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
        """Sends what is not there yet, and returns the path of the whole."""
        whole = self._path(0)
        have = {each.name: each.size_bytes for each in self._hdfs.entries(self._folder)}
        if size_bytes > self._part_bytes and have.get(_part_name(0)) == size_bytes:
            return whole  # its parts were joined already
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
            found = "is gone" if stored is None else f"has {stored.size_bytes} of {size_bytes} bytes"
            msg = f"package {package}: what was stored as {whole} in HDFS at {self._hdfs.url} {found}; submit again"
            raise PackageError(msg)
        return whole

    def discard(self) -> None:
        """Removes what is left of the parts."""
        self._hdfs.remove(self._folder)

    def _send_part(self, package: Path, offset: int, length: int) -> None:
        """Sends a part; one that breaks in the middle is sent again, a few times, if something moved."""
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
        """What was taken of it, without the first chunk, which the system takes before the server has any."""
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
    """Whether no upload goes on with a folder of parts."""
    match = PARTS.fullmatch(parts.name)
    if match is None or not parts.is_folder:
        return False
    if match["home"] == home() and not Path(f"/proc/{match['pid']}").exists():
        return True
    return parts.modified_ms < now_ms - _ABANDONED_MS


def _own_name(file: str) -> str:
    return f".{file}.parts-{home()}-{os.getpid()}-{secrets.token_hex(8)}"


def home() -> str:
    """Where a process id says something: this start of this machine, and this namespace of processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return hashlib.sha256(f"{boot}{os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]


def _part_name(offset: int) -> str:
    return f"{offset:016d}"
