"""The operations of WebHDFS that drivers need, with a timeout without progress and with translated errors."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol
from urllib.parse import urlsplit

import requests
from hdfs import Client, HdfsError

from heron import clock
from heron.errors import HeronError
from heron_driver_kit.packages import CHUNK_BYTES

__all__ = ["Entry", "HdfsErrors", "WebHdfs"]

_CONNECT_S = 5.0
_ANSWER_S = 15.0  # a data node may wait for its disk; two attempts fit into the contract's 30 s without progress
_STALL_S = 25.0
_DATE_LENGTH = len("Sat, 21 Nov 2026 09:29:07 GMT")

_NOT_FOUND = "FileNotFoundException"
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"
_EXISTS = "FileAlreadyExistsException"
_QUOTA = "the quota is full; {space}, or raise it with `hdfs dfsadmin -setSpaceQuota` or `-setQuota`"
_SIGN_IN = "{user} cannot sign in; check {section}.user and {section}.token"
_NO_FOLDER = "a part of the path is a file; move it away, or choose another {section}.root"
_NO_RIGHT = "permission denied; grant it to {user}, or choose another {section}.root or {section}.user"
_REFUSALS = {
    "AccessControlException": _NO_RIGHT,
    "QuotaExceededException": _QUOTA,
    "NSQuotaExceededException": _QUOTA,
    "DSQuotaExceededException": _QUOTA,
    "AuthenticationException": _SIGN_IN,
    "InvalidToken": "the delegation token is invalid or has expired; set {section}.token to a new one",
    "SecurityException": _SIGN_IN,
    "ParentNotDirectoryException": _NO_FOLDER,
}


class _Operation(Protocol):
    def __call__(self, path: str, /, **parameters: object) -> requests.Response: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder. `modified_ms` is by the clock of HDFS; a rename does not change `file_id`."""

    name: str
    size_bytes: int
    modified_ms: int
    is_folder: bool
    file_id: int


@dataclass(frozen=True, slots=True)
class HdfsErrors:
    """The errors of a family, and its words in their messages.

    `section` is the section of the profile, `space` how people make room, and `again` what they do about a file that is
    gone.
    """

    section: str
    space: str
    again: str
    refused: type[HeronError]
    """HDFS refused the request."""
    unanswered: type[HeronError]
    """No answer came, the connection broke, or HDFS failed; derived from `refused`."""


class WebHdfs:
    """A session for one operation of a driver; close it afterwards.

    Every call raises an error of `errors`: `unanswered` when no answer comes or no byte moves for 25 s, and `refused`
    when HDFS refuses.
    """

    def __init__(self, url: str, user: str, token: str, errors: HdfsErrors) -> None:
        self.url = url
        self._errors = errors
        self._user = "the owner of the token" if token else f"user {user or getpass.getuser()!r}"
        self._session = _Session()
        self._session.params = {"delegation": token} if token else {"user.name": user or getpass.getuser()}
        self._client = _Client(url, session=self._session)
        # The library logs each request.
        logging.getLogger("hdfs").setLevel(logging.ERROR)

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

    def make_folder(self, path: str) -> None:
        """Create a folder that only its owner can enter, and missing folders above it."""
        with self._translated("be created", path):
            self._client.makedirs(path, permission="700")

    def move(self, source: str, target: str, *, replace: bool = False) -> bool:
        """Rename in one step; False when `source` does not exist, or when `target` exists and `replace` is false."""
        with self._translated("be stored", target):
            try:
                self._client._rename(source, destination=target, renameoptions="OVERWRITE" if replace else "NONE")
            except HdfsError as error:
                if error.exception in (_NOT_FOUND, _EXISTS):
                    return False
                raise
            return True

    def join(self, target: str, others: Sequence[str]) -> None:
        """Append files to `target` in the same folder, in one step without a copy. The files disappear."""
        with self._translated("be joined", target):
            self._client._concat(target, sources=",".join(others))

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its content; a missing path is not an error."""
        with self._translated("be removed", path):
            self._client.delete(path, recursive=True)

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

    def _found(self, operation: _Operation, path: str, **parameters: object) -> requests.Response | None:
        try:
            return operation(path, **parameters)
        except HdfsError as error:
            if error.exception == _NOT_FOUND:
                return None
            raise

    @contextmanager
    def _translated(self, action: str, path: str) -> Iterator[None]:
        what = f"{path} in HDFS at {self.url}: cannot {action}"
        try:
            yield
        except HdfsError as error:
            raise self._refusal(what, error) from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._errors.unanswered(self._no_web_hdfs(what)) from error
        except requests.RequestException as error:
            # The error's own text contains the URL, and so the token.
            server = urlsplit(getattr(error.request, "url", None) or self.url)
            reason = "does not answer in time" if isinstance(error, requests.Timeout) else "cannot be reached"
            msg = (
                f"{what}: {server.scheme}://{server.netloc} {reason}; "
                "check that it is running and that this machine can reach name nodes and data nodes"
            )
            raise self._errors.unanswered(msg) from error

    def _refusal(self, what: str, error: HdfsError) -> HeronError:
        if str(error.message).startswith("Authentication failure"):
            return self._errors.refused(f"{what}: {self._worded(_SIGN_IN)}")
        if error.exception is None:
            return self._errors.unanswered(self._no_web_hdfs(what))
        if error.exception == _NOT_FOUND:
            return self._errors.refused(f"{what}: not found; {self._errors.again}")
        reason = _REFUSALS.get(error.exception)
        if reason is not None and "is not a directory" in str(error.message):
            reason = _NO_FOLDER  # HDFS reports it as a missing permission to search the path
        if reason is not None:
            return self._errors.refused(f"{what}: {self._worded(reason)}")
        report = str(error.message).strip().partition("\n")[0]
        return self._errors.unanswered(f"{what}: HDFS reports {report!r:.300}; repair HDFS and try again")

    def _worded(self, reason: str) -> str:
        return reason.format(user=self._user, section=self._errors.section, space=self._errors.space)

    def _no_web_hdfs(self, what: str) -> str:
        return (
            f"{what}: the server is not WebHDFS; check that {self._errors.section}.url is the web address of a name "
            "node and that dfs.webhdfs.enabled is true"
        )


class _Client(Client):  # type: ignore[misc]  # ships no types
    """The library's client with the operation CONCAT, which the library lacks."""

    def _concat(self, path: str, **parameters: object) -> None:
        url = f"{self._urls[0].rstrip('/')}/webhdfs/v1{path}"
        answer = self._request("POST", url, params={"op": "CONCAT", **parameters})
        if not answer:
            refusal = answer.json()["RemoteException"]
            raise HdfsError(refusal["message"], exception=refusal["exception"])


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
