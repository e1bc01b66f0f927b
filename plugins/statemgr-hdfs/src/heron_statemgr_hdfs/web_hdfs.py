"""The few operations of WebHDFS that nodes are made of, with a limit on time and errors in Heron's words."""

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

_REQUEST_S = 4.0  # a name node that collects garbage may take seconds; two requests that hang fit into the contract
_CHUNK_BYTES = 1024 * 1024

_NOT_FOUND = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_QUOTA = "the quota is used up; make room, or raise it (hdfs dfsadmin -setSpaceQuota, -setQuota)"
_NO_FOLDER = "a part of the path is a file; move it away, or choose another 'root'"
_REFUSALS = {
    "AccessControlException": "permission denied; give {user} the right, or choose another 'root' or 'user'",
    "QuotaExceededException": _QUOTA,
    "NSQuotaExceededException": _QUOTA,
    "DSQuotaExceededException": _QUOTA,
    "AuthenticationException": "{user} is not let in; check 'user' and 'token'",
    "InvalidToken": "the delegation token is refused or over; get a new one for 'token'",
    "SecurityException": "{user} is not let in; check 'user' and 'token'",
    "ParentNotDirectoryException": _NO_FOLDER,
}


class _Operation(Protocol):
    def __call__(self, path: str, /, **parameters: object) -> requests.Response: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """What a folder says of one file or folder in it. `modified_ms` is by the clock of HDFS, or what was set."""

    name: str
    modified_ms: int
    children: int


class WebHdfs:
    """Thread-safe. Every call raises StateUnavailableError when there is no answer, StateError when it is no.

    A request that gets no answer is not repeated, except at the other name nodes where there are several.
    """

    def __init__(self, url: str, user: str, token: str) -> None:
        self.url = url
        self._who = "the bearer of the token" if token else f"user {user or getpass.getuser()!r}"
        self._session = _Session()
        self._session.params = {"delegation": token} if token else {"user.name": user or getpass.getuser()}
        self._client = Client(url, session=self._session)
        # It tells of each request, and a watch makes two a second.
        logging.getLogger("hdfs").setLevel(logging.ERROR)

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """What this thread asks in the block has ended after `limit_s` seconds; an outer block's limit holds too."""
        with self._session.within(limit_s):
            yield

    def exists(self, path: str) -> bool:
        """Whether there is anything of that path."""
        with self._translated("read", path):
            return self._found(self._client._get_file_status, path) is not None

    def entries(self, folder: str) -> tuple[Entry, ...] | None:
        """All that is in a folder, as it was at one instant; None when there is no such folder."""
        with self._translated("list", folder):
            answer = self._found(self._client._list_status, folder)
            if answer is None:
                return None
            found = answer.json()["FileStatuses"]["FileStatus"]
            if len(found) == 1 and not found[0]["pathSuffix"]:
                message = f"{self._place(folder)}: a file stands where a folder belongs; move it away"
                raise StateError(message)
            return tuple(Entry(each["pathSuffix"], each["modificationTime"], each["childrenNum"]) for each in found)

    def read(self, path: str) -> bytes | None:
        """The content of a file; None when there is none."""
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
        """Makes a file that only its owner can read; its folder exists."""
        with self._translated("write", path):
            self._client.write(path, content, permission="600")

    def make_folder(self, path: str) -> None:
        """Makes a folder that only its owner can enter, and those above it, where they are absent."""
        with self._translated("make", path):
            self._client.makedirs(path, permission="700")

    def move(self, source: str, target: str) -> bool:
        """Renames a file or folder, whole or not at all; False when `source` is gone or there is a `target`."""
        with self._translated("commit", target):
            try:
                # Without an option a rename onto a folder moves into it.
                self._client._rename(source, destination=target, renameoptions="NONE")
            except HdfsError as error:
                if error.exception in (_NOT_FOUND, _EXISTS):
                    return False
                raise
            return True

    def stamp(self, path: str, modified_ms: int) -> None:
        """Sets the time of change of a file, if it is there."""
        with self._translated("renew", path):
            self._found(self._client._set_times, path, modificationtime=modified_ms)

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it, if it is there."""
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
            # Its own text has the URL in it, and the URL the token.
            asked = urlsplit(getattr(error.request, "url", None) or self.url)
            reason = "does not answer in time" if isinstance(error, requests.Timeout) else "cannot be reached"
            message = (
                f"cannot {action} {self._place(path)}: {asked.scheme}://{asked.netloc} {reason}; "
                "is it running, and may this machine reach name nodes and data nodes?"
            )
            raise StateUnavailableError(message) from error

    def _refusal(self, action: str, path: str, error: HdfsError) -> StateError:
        place = self._place(path)
        if str(error.message).startswith("Authentication failure"):
            return StateError(f"cannot {action} {place}: {_REFUSALS['SecurityException'].format(user=self._who)}")
        if error.exception is None:
            return StateUnavailableError(self._no_web_hdfs(action, path))
        reason = _REFUSALS.get(error.exception)
        if reason is not None and "is not a directory" in str(error.message):
            reason = _NO_FOLDER  # said as a lack of permission to search it
        if reason is not None:
            return StateError(f"cannot {action} {place}: {reason.format(user=self._who)}")
        said = str(error.message).strip().partition("\n")[0]
        return StateUnavailableError(f"cannot {action} {place}: HDFS says {said!r:.300}; try again when it is mended")

    def _no_web_hdfs(self, action: str, path: str) -> str:
        return (
            f"cannot {action} {self._place(path)}: what answers there is not WebHDFS; "
            "is 'url' the web address of a name node, and dfs.webhdfs.enabled true?"
        )

    def _place(self, path: str) -> str:
        return f"{path} in HDFS at {self.url}"


class _Session(requests.Session):
    """Gives each request what is left of the time of its thread."""

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
        """What a request may take now.

        Raises:
            requests.Timeout: when nothing is left.
        """
        deadline_s: float | None = getattr(self._limits, "deadline_s", None)
        if deadline_s is None:
            return _REQUEST_S
        left_s = deadline_s - clock.monotonic_s()
        if left_s <= 0:
            raise requests.Timeout
        return min(left_s, _REQUEST_S)
