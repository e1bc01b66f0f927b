"""The operations of WebHDFS that drivers need, with a timeout without progress and with translated errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import requests
from hdfs import HdfsError

from heron import clock
from heron_driver_kit.packages import CHUNK_BYTES
from heron_hdfs_kit.hdfs_client import EXISTS, NOT_FOUND, HdfsClient, HdfsErrors

__all__ = ["Entry", "HdfsErrors", "WebHdfs"]

_CONNECT_S = 5.0
_ANSWER_S = 15.0  # a data node may wait for its disk; two attempts fit into the contract's 30 s without progress
_STALL_S = 25.0
_DATE_LENGTH = len("Sat, 21 Nov 2026 09:29:07 GMT")
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder. `modified_ms` is by the clock of HDFS; a rename does not change `file_id`."""

    name: str
    size_bytes: int
    modified_ms: int
    is_folder: bool
    file_id: int


class WebHdfs(HdfsClient):
    """A session for one operation of a driver; close it afterwards. A call fails when no byte moves for 25 s."""

    def __init__(self, url: str, user: str, token: str, errors: HdfsErrors) -> None:
        self._session = _Session()
        super().__init__(url, user, token, errors, self._session)

    def __enter__(self) -> WebHdfs:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def limit(self, stall_s: float) -> None:
        """From now on, fail after `stall_s` seconds without progress."""
        self._session.limit(stall_s)

    def entry(self, path: str) -> Entry | None:
        """Return the file or folder; None when it does not exist."""
        with self._translated("be read", path):
            answer = self._found(self._client._get_file_status, path)
            return None if answer is None else _entry(answer.json()["FileStatus"])

    def entries(self, folder: str) -> tuple[Entry, ...]:
        """List a folder; empty when the folder does not exist."""
        with self._translated("be listed", folder):
            answer = self._found(self._client._list_status, folder)
            found = [] if answer is None else answer.json()["FileStatuses"]["FileStatus"]
            return tuple(_entry(each) for each in found)

    def now_ms(self) -> int:
        """Return the time of the name node's clock, in whole seconds; 0 when a proxy removes the header."""
        with self._translated("be read", "/"):
            date = self._client._get_file_status("/").headers.get("Date", "")
            # A name node sends the header twice, and the library joins both values.
            return round(parsedate_to_datetime(date[:_DATE_LENGTH]).timestamp() * 1000) if date else 0

    def read(self, path: str, offset: int, size_bytes: int | None = None) -> Iterator[bytes]:
        """Yield the content of a file from an offset on: all of it, or at most `size_bytes`."""
        length = {} if size_bytes is None else {"length": size_bytes}
        with self._translated("be read", path), self._client._open(path, offset=offset, **length) as answer:
            for chunk in answer.iter_content(CHUNK_BYTES):
                self._session.moved()
                yield chunk

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """Write a file that only its owner can read, into an existing folder. It is complete after success."""
        with self._translated("be written", path):
            self._client.write(path, data=self._reporting(content), permission="600")
            self._session.moved()

    def move(self, source: str, target: str, *, replace: bool = False) -> bool:
        """Rename in one step; False when `source` does not exist, or when `target` exists and `replace` is false."""
        with self._translated("be stored", target):
            try:
                self._client._rename(source, destination=target, renameoptions="OVERWRITE" if replace else "NONE")
            except HdfsError as error:
                if error.exception in (NOT_FOUND, EXISTS):
                    return False
                raise
            return True

    def join(self, target: str, others: Sequence[str]) -> None:
        """Append files to `target` in the same folder, in one step without a copy. The files disappear."""
        with self._translated("be joined", target):
            self._client._concat(target, sources=",".join(others))

    def remove_if_empty(self, folder: str) -> None:
        """Remove a folder without content; a missing folder, or one with content, is not an error."""
        with self._translated("be removed", folder):
            try:
                self._client.delete(folder)
            except HdfsError as error:
                if error.exception != _NOT_EMPTY:
                    raise

    def _reporting(self, content: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in content:
            self._session.moved()
            yield chunk


class _Session(requests.Session):
    """Limits each request to the time that is left without progress."""

    def __init__(self) -> None:
        super().__init__()
        self.limit(_STALL_S)

    def limit(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self.moved()

    def moved(self) -> None:
        """Note progress: the time without progress starts again."""
        self._deadline_s = clock.monotonic_s() + self._stall_s

    def request(self, *arguments: object, **named: object) -> requests.Response:
        left_s = self._deadline_s - clock.monotonic_s()
        if left_s <= 0:
            raise requests.Timeout
        timeout = (min(_CONNECT_S, left_s), min(_ANSWER_S, left_s))
        return super().request(*arguments, **{**named, "timeout": timeout})  # type: ignore[arg-type]


def _entry(found: dict[str, object]) -> Entry:
    name, kind = str(found["pathSuffix"]), found["type"]
    size, modified, file_id = (int(str(found[key])) for key in ("length", "modificationTime", "fileId"))
    return Entry(name, size, modified, kind == "DIRECTORY", file_id)
