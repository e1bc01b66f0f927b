"""A client of WebHDFS whose calls raise the errors of a family, for sessions with any limit of time."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import requests
from hdfs import Client, HdfsError

from heron.errors import HeronError

__all__ = ["EXISTS", "NOT_FOUND", "HdfsClient", "HdfsErrors"]

NOT_FOUND = "FileNotFoundException"
EXISTS = "FileAlreadyExistsException"
"""The names of exceptions that some operations expect."""

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
class HdfsErrors:
    """The errors of a family, and its words in their messages.

    `section` is the section of the profile, and `space` how people make room.
    """

    section: str
    space: str
    refused: type[HeronError]
    """HDFS refused the request."""
    unanswered: type[HeronError]
    """No answer came, the connection broke, or HDFS failed; derived from `refused`."""
    again: str = ""
    """What people do about a file that is gone; empty: it comes back, so the call is `unanswered`."""


class HdfsClient:
    """Asks WebHDFS through a session, which may set the limits of time of each request.

    Every call raises an error of `errors`: `unanswered` when no answer comes in the time of the session, and `refused`
    when HDFS refuses. A request without an answer is sent to the other name nodes of `url`, if there are any.
    """

    def __init__(self, url: str, user: str, token: str, errors: HdfsErrors, session: requests.Session) -> None:
        self.url = url
        self._errors = errors
        self._user = "the owner of the token" if token else f"user {user or getpass.getuser()!r}"
        session.params = {"delegation": token} if token else {"user.name": user or getpass.getuser()}
        self._client = _Client(url, session=session)
        # The library logs each request.
        logging.getLogger("hdfs").setLevel(logging.ERROR)

    def make_folder(self, path: str) -> None:
        """Create a folder that only its owner can enter, and missing folders above it."""
        with self._translated("be created", path):
            self._client.makedirs(path, permission="700")

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its content; a missing path is not an error."""
        with self._translated("be removed", path):
            self._client.delete(path, recursive=True)

    def _found(self, operation: _Operation, path: str, **parameters: object) -> requests.Response | None:
        try:
            return operation(path, **parameters)
        except HdfsError as error:
            if error.exception == NOT_FOUND:
                return None
            raise

    def _place(self, path: str) -> str:
        return f"{path} in HDFS at {self.url}"

    @contextmanager
    def _translated(self, action: str, path: str) -> Iterator[None]:
        what = f"{self._place(path)}: cannot {action}"
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
        if error.exception == NOT_FOUND and self._errors.again:
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
