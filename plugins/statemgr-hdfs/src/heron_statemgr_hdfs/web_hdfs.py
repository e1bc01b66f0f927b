"""The operations of WebHDFS that nodes need, with time limits and with errors of Heron."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests
from hdfs import HdfsError

from heron import clock
from heron.errors import StateError, StateUnavailableError
from heron_hdfs_kit.hdfs_client import EXISTS, NOT_FOUND, HdfsClient, HdfsErrors

__all__ = ["Entry", "WebHdfs"]

_REQUEST_S = 4.0  # garbage collection in a name node can take seconds; the contract allows for two such requests
_CHUNK_BYTES = 1024 * 1024

_ERRORS = HdfsErrors(section="statemgr", space="make room", refused=StateError, unanswered=StateUnavailableError)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder in a listing. `modified_ms` is a time of the clock of HDFS, or the value of `set_modified`."""

    name: str
    modified_ms: int
    children: int


class WebHdfs(HdfsClient):
    """Thread-safe. Every call raises StateUnavailableError without an answer, and StateError if HDFS refuses.

    A request without an answer is sent to the other name nodes, if there are any. Otherwise it is not repeated.
    """

    def __init__(self, url: str, user: str, token: str) -> None:
        self._session = _Session()
        super().__init__(url, user, token, _ERRORS, self._session)

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Limit the requests of this thread in the block to `limit_s` seconds in total. Outer limits hold too."""
        with self._session.within(limit_s):
            yield

    def entries(self, folder: str) -> tuple[Entry, ...] | None:
        """Return the content of a folder at one instant; None when the folder does not exist."""
        with self._translated("be listed", folder):
            answer = self._found(self._client._list_status, folder)
            if answer is None:
                return None
            found = answer.json()["FileStatuses"]["FileStatus"]
            if len(found) == 1 and not found[0]["pathSuffix"]:
                message = f"{self._place(folder)}: there is a file where a folder is needed; move it away"
                raise StateError(message)
            return tuple(Entry(each["pathSuffix"], each["modificationTime"], each["childrenNum"]) for each in found)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None when the file does not exist."""
        with self._translated("be read", path):
            answer = self._found(self._client._open, path)
            if answer is None:
                return None
            with answer:
                content = bytearray()
                for chunk in answer.iter_content(_CHUNK_BYTES):
                    content += chunk
                    self._session.left_s()
                return bytes(content)

    def write(self, path: str, content: bytes) -> None:
        """Create a file that only its owner can read, in an existing folder."""
        with self._translated("be written", path):
            self._client.write(path, content, permission="600")

    def move(self, source: str, target: str) -> bool:
        """Rename a file or folder atomically. Return False when `source` is gone or `target` exists."""
        with self._translated("be committed", target):
            try:
                # Without an option a rename onto a folder moves into it.
                self._client._rename(source, destination=target, renameoptions="NONE")
            except HdfsError as error:
                if error.exception in (NOT_FOUND, EXISTS):
                    return False
                raise
            return True

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file, if it exists."""
        with self._translated("be renewed", path):
            self._found(self._client._set_times, path, modificationtime=modified_ms)

    def close(self) -> None:
        self._session.close()


class _Session(requests.Session):
    """Limits each request to the remaining time of its thread."""

    def __init__(self) -> None:
        super().__init__()
        self._limits = threading.local()

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        outer_s: float | None = getattr(self._limits, "deadline_s", None)
        deadline_s = clock.monotonic_s() + limit_s
        self._limits.deadline_s = deadline_s if outer_s is None else min(outer_s, deadline_s)
        try:
            yield
        finally:
            self._limits.deadline_s = outer_s

    def request(self, *arguments: object, **named: object) -> requests.Response:
        return super().request(*arguments, **{**named, "timeout": self.left_s()})  # type: ignore[arg-type]

    def left_s(self) -> float:
        """Return the time that a request may take now.

        Raises:
            requests.Timeout: when no time is left.
        """
        deadline_s: float | None = getattr(self._limits, "deadline_s", None)
        if deadline_s is None:
            return _REQUEST_S
        left_s = deadline_s - clock.monotonic_s()
        if left_s <= 0:
            raise requests.Timeout
        return min(left_s, _REQUEST_S)
