"""The operations of WebHDFS that nodes need, with time limits and with errors of Heron."""

from __future__ import annotations

import getpass
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import requests
from hdfs import Client, HdfsError

from heron import clock
from heron.errors import StateError, StateUnavailableError

__all__ = ["Entry", "WebHdfs"]

_REQUEST_S = 4.0  # garbage collection in a name node can take seconds; the contract allows for two such requests
_CHUNK_BYTES = 1024 * 1024

_NOT_FOUND = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_QUOTA = "the quota is used up; make room, or raise it (hdfs dfsadmin -setSpaceQuota, -setQuota)"
_NO_FOLDER = "a part of the path is a file; move it away, or choose another 'root'"
_NO_ACCESS = "HDFS does not accept {user}; check 'user' and 'token'"
_REFUSALS = {
    "AccessControlException": "permission denied; give {user} the right, or choose another 'root' or 'user'",
    "QuotaExceededException": _QUOTA,
    "NSQuotaExceededException": _QUOTA,
    "DSQuotaExceededException": _QUOTA,
    "AuthenticationException": _NO_ACCESS,
    "InvalidToken": "the delegation token is invalid or expired; get a new one for 'token'",
    "SecurityException": _NO_ACCESS,
    "ParentNotDirectoryException": _NO_FOLDER,
}


class _Operation(Protocol):
    def __call__(self, path: str, /, **parameters: object) -> requests.Response: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder in a listing. `modified_ms` is a time of the clock of HDFS, or the value of `set_modified`."""

    name: str
    modified_ms: int
    children: int


class WebHdfs:
    """Thread-safe. Every call raises StateUnavailableError without an answer, and StateError if HDFS refuses.

    A request without an answer is sent to the other name nodes, if there are any. Otherwise it is not repeated.
    """

    def __init__(self, url: str, user: str, token: str) -> None:
        self.url = url
        self._user = "the owner of the token" if token else f"user {user or getpass.getuser()!r}"
        self._session = _Session()
        self._session.params = {"delegation": token} if token else {"user.name": user or getpass.getuser()}
        self._client = Client(url, session=self._session)
        # The library logs each request, and a watch sends two each second.
        logging.getLogger("hdfs").setLevel(logging.ERROR)

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Limit the requests of this thread in the block to `limit_s` seconds in total. Outer limits hold too."""
        with self._session.within(limit_s):
            yield

    def entries(self, folder: str) -> tuple[Entry, ...] | None:
        """Return the content of a folder at one instant; None when the folder does not exist."""
        with self._translated("list", folder):
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
        with self._translated("read", path):
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
        with self._translated("write", path):
            self._client.write(path, content, permission="600")

    def make_folder(self, path: str) -> None:
        """Create a folder that only its owner can enter, and its ancestors, as far as they do not exist."""
        with self._translated("create", path):
            self._client.makedirs(path, permission="700")

    def move(self, source: str, target: str) -> bool:
        """Rename a file or folder atomically. Return False when `source` is gone or `target` exists."""
        with self._translated("commit", target):
            try:
                # Without an option a rename onto a folder moves into it.
                self._client._rename(source, destination=target, renameoptions="NONE")
            except HdfsError as error:
                if error.exception in (_NOT_FOUND, _EXISTS):
                    return False
                raise
            return True

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file, if it exists."""
        with self._translated("renew", path):
            self._found(self._client._set_times, path, modificationtime=modified_ms)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""
        with self._translated("remove", path):
            self._client.delete(path, recursive=True)

    def close(self) -> None:
        self._session.close()

    def _found(self, operation: _Operation, path: str, **parameters: object) -> requests.Response | None:
        try:
            return operation(path, **parameters)
        except HdfsError as error:
            if error.exception == _NOT_FOUND:
                return None
            raise

    @contextmanager
    def _translated(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except HdfsError as error:
            raise self._refusal(action, path, error) from error
        except (KeyError, TypeError, ValueError) as error:
            raise StateUnavailableError(self._no_web_hdfs(action, path)) from error
        except requests.RequestException as error:
            # The text of the error contains the URL, and the URL contains the token.
            asked = urlsplit(getattr(error.request, "url", None) or self.url)
            reason = "does not answer in time" if isinstance(error, requests.Timeout) else "cannot be reached"
            message = (
                f"cannot {action} {self._place(path)}: {asked.scheme}://{asked.netloc} {reason}; "
                "is it running, and can this machine reach the name nodes and data nodes?"
            )
            raise StateUnavailableError(message) from error

    def _refusal(self, action: str, path: str, error: HdfsError) -> StateError:
        place = self._place(path)
        if str(error.message).startswith("Authentication failure"):
            return StateError(f"cannot {action} {place}: {_NO_ACCESS.format(user=self._user)}")
        if error.exception is None:
            return StateUnavailableError(self._no_web_hdfs(action, path))
        reason = _REFUSALS.get(error.exception)
        if reason is not None and "is not a directory" in str(error.message):
            reason = _NO_FOLDER  # HDFS reports it as a missing permission
        if reason is not None:
            return StateError(f"cannot {action} {place}: {reason.format(user=self._user)}")
        answer = str(error.message).strip().partition("\n")[0]
        return StateUnavailableError(f"cannot {action} {place}: HDFS reports {answer!r:.300}; repair it and try again")

    def _no_web_hdfs(self, action: str, path: str) -> str:
        return (
            f"cannot {action} {self._place(path)}: the server there is not WebHDFS; "
            "is 'url' the web address of a name node, and dfs.webhdfs.enabled true?"
        )

    def _place(self, path: str) -> str:
        return f"{path} in HDFS at {self.url}"


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
