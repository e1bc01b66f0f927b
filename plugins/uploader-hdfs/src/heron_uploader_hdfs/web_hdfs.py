"""The few operations of WebHDFS that move packages, given up when nothing moves, with errors in Heron's words."""

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
from heron.driver_kit.packages import CHUNK_BYTES, InterruptedTransferError
from heron.errors import PackageError

__all__ = ["Entry", "WebHdfs"]

_CONNECT_S = 5.0
_ANSWER_S = 15.0  # a data node that waits for its disk; two of these fit into the contract's 30 s without progress
_PATIENCE_S = 25.0
_DATE_LENGTH = len("Sat, 21 Nov 2026 09:29:07 GMT")

_NOT_FOUND = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_QUOTA = "the quota is used up; make room (heron packages prune), or raise it (hdfs dfsadmin -setSpaceQuota, -setQuota)"
_NO_FOLDER = "a part of the path is a file; move it away, or choose another uploader.root"
_REFUSALS = {
    "AccessControlException": "permission denied; give {user} the right, or choose another uploader.root or user",
    "QuotaExceededException": _QUOTA,
    "NSQuotaExceededException": _QUOTA,
    "DSQuotaExceededException": _QUOTA,
    "AuthenticationException": "{user} is not let in; check uploader.user and token",
    "InvalidToken": "the delegation token is refused or over; get a new one for uploader.token",
    "SecurityException": "{user} is not let in; check uploader.user and token",
    "ParentNotDirectoryException": _NO_FOLDER,
}


class _Operation(Protocol):
    def __call__(self, path: str, /, **parameters: object) -> requests.Response: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """What HDFS says of a file or folder. `modified_ms` is by its own clock; `file_id` stays when it is renamed."""

    name: str
    size_bytes: int
    modified_ms: int
    is_folder: bool
    file_id: int


class WebHdfs:
    """For one upload, download or removal; close it afterwards.

    Every call raises InterruptedTransferError when there is no answer, or nothing moved for 25 s; PackageError when
    the answer is no.
    """

    def __init__(self, url: str, user: str, token: str) -> None:
        self.url = url
        self._who = "the bearer of the token" if token else f"user {user or getpass.getuser()!r}"
        self._session = _Session()
        self._session.params = {"delegation": token} if token else {"user.name": user or getpass.getuser()}
        self._client = _Client(url, session=self._session)
        # It tells of each request.
        logging.getLogger("hdfs").setLevel(logging.ERROR)

    def __enter__(self) -> WebHdfs:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def limit(self, left_s: float) -> None:
        """From now on it ends after `left_s` seconds, unless something moves."""
        self._session.limit(left_s)

    def entry(self, path: str) -> Entry | None:
        """The file or folder of that path, if there is one."""
        with self._translated("be read", path):
            answer = self._found(self._client._get_file_status, path)
            return None if answer is None else _entry(answer.json()["FileStatus"])

    def entries(self, folder: str) -> tuple[Entry, ...]:
        """All that is in a folder; nothing when there is no such folder."""
        with self._translated("be listed", folder):
            answer = self._found(self._client._list_status, folder)
            found = [] if answer is None else answer.json()["FileStatuses"]["FileStatus"]
            return tuple(_entry(each) for each in found)

    def now_ms(self) -> int:
        """The time by the name node's clock, to a second; 0 where a proxy keeps it to itself."""
        with self._translated("be read", "/"):
            said = self._client._get_file_status("/").headers.get("Date", "")
            # A name node says it twice, which comes as one line.
            return round(parsedate_to_datetime(said[:_DATE_LENGTH]).timestamp() * 1000) if said else 0

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        """The content of a file from an offset on."""
        with self._translated("be read", path), self._client._open(path, offset=offset) as answer:
            for chunk in answer.iter_content(CHUNK_BYTES):
                self._session.moved()
                yield chunk

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """Makes a file that only its owner can read; its folder exists. Whole when it returns."""
        with self._translated("be written", path):
            self._client.write(path, data=self._noting(content), permission="600")
            self._session.moved()

    def make_folder(self, path: str) -> None:
        """Makes a folder that only its owner can enter, and those above it, where they are absent."""
        with self._translated("be made", path):
            self._client.makedirs(path, permission="700")

    def move(self, source: str, target: str, *, replace: bool = False) -> bool:
        """Renames, whole or not at all; False when `source` is gone, or a `target` is there that stays."""
        with self._translated("be stored", target):
            try:
                self._client._rename(source, destination=target, renameoptions="OVERWRITE" if replace else "NONE")
            except HdfsError as error:
                if error.exception in (_NOT_FOUND, _EXISTS):
                    return False
                raise
            return True

    def join(self, target: str, others: Sequence[str]) -> None:
        """Appends files to one of the same folder, in one step that moves no bytes; they are gone then."""
        with self._translated("be joined", target):
            self._client._concat(target, sources=",".join(others))

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it, if it is there."""
        with self._translated("be removed", path):
            self._client.delete(path, recursive=True)

    def _noting(self, content: Iterable[bytes]) -> Iterator[bytes]:
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
            raise InterruptedTransferError(_no_web_hdfs(what)) from error
        except requests.RequestException as error:
            # Its own text has the URL in it, and the URL the token.
            asked = urlsplit(getattr(error.request, "url", None) or self.url)
            reason = "does not answer in time" if isinstance(error, requests.Timeout) else "cannot be reached"
            msg = (
                f"{what}: {asked.scheme}://{asked.netloc} {reason}; "
                "is it running, and may this machine reach name nodes and data nodes?"
            )
            raise InterruptedTransferError(msg) from error

    def _refusal(self, what: str, error: HdfsError) -> PackageError:
        if str(error.message).startswith("Authentication failure"):
            return PackageError(f"{what}: {_REFUSALS['SecurityException'].format(user=self._who)}")
        if error.exception is None:
            return InterruptedTransferError(_no_web_hdfs(what))
        if error.exception == _NOT_FOUND:
            return PackageError(f"{what}: it is not there; submit the topology again")
        reason = _REFUSALS.get(error.exception)
        if reason is not None and "is not a directory" in str(error.message):
            reason = _NO_FOLDER  # said as a lack of permission to search it
        if reason is not None:
            return PackageError(f"{what}: {reason.format(user=self._who)}")
        said = str(error.message).strip().partition("\n")[0]
        return InterruptedTransferError(f"{what}: HDFS says {said!r:.300}; try again when it is mended")


class _Client(Client):  # type: ignore[misc]  # ships no types
    """The library's client, with an operation that it does not have."""

    def _concat(self, path: str, **parameters: object) -> None:
        url = f"{self._urls[0].rstrip('/')}/webhdfs/v1{path}"
        answer = self._request("POST", url, params={"op": "CONCAT", **parameters})
        if not answer:
            said = answer.json()["RemoteException"]
            raise HdfsError(said["message"], exception=said["exception"])


class _Session(requests.Session):
    """Gives each request what is left of the time in which something has to move."""

    def __init__(self) -> None:
        super().__init__()
        self.limit(_PATIENCE_S)

    def limit(self, left_s: float) -> None:
        self._patience_s = left_s
        self.moved()

    def moved(self) -> None:
        self._deadline_s = clock.monotonic_s() + self._patience_s

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


def _no_web_hdfs(what: str) -> str:
    return (
        f"{what}: what answers there is not WebHDFS; "
        "is uploader.url the web address of a name node, and dfs.webhdfs.enabled true?"
    )
