"""What drivers share that ask the servers of a cluster over HTTP: answers in JSON of any shape, and refusals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from heron.errors import SchedulerError

__all__ = ["ApiError", "Json", "RestApi", "fields", "items", "refused", "translated", "unanswered"]

A = TypeVar("A")

Json = dict[str, object]

_NOT_FOUND = 404
_MOST = 400


class ApiError(SchedulerError):
    """A server refuses a request; `status` is the code of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RestApi(ABC, Generic[A]):
    """The servers of one cluster and one user; `access` has addresses and credentials. Used from one thread."""

    def __init__(self, find: Callable[[], A]) -> None:
        """`find` is called before the first request."""
        self._find = find
        self._access: A | None = None

    @property
    def access(self) -> A:
        """The servers and the user. Raises SchedulerError when there is none."""
        if self._access is None:
            self._access = self._find()
        return self._access

    @abstractmethod
    def request(
        self, method: str, path: str, body: Json | None = None, query: Mapping[str, str] | None = None
    ) -> object:
        """Return the answer.

        Raises:
            ApiError: when a server refuses, with its message.
            SchedulerError: when none answers; the outcome is unknown.
        """

    def find(self, path: str) -> Json | None:
        """GET an object; None when it does not exist."""
        try:
            return fields(self.request("GET", path))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return None


def refused(request: str, said: str, status: int, remedy: str) -> ApiError:
    """Return the error of a request that a server refuses, in its words; `remedy` may be empty."""
    msg = f"{request}: {' '.join(said.split())[:_MOST]} ({status})"
    return ApiError(f"{msg}; {remedy}" if remedy else msg, status)


def unanswered(server: str, why: Exception, remedy: str) -> SchedulerError:
    """Return the error of a request without an answer."""
    return SchedulerError(f"{server} does not answer: {str(why) or type(why).__name__}; {remedy}")


@contextmanager
def translated(to: type[SchedulerError], *statuses: int) -> Iterator[None]:
    """Raise refusals with one of these codes as another error."""
    try:
        yield
    except ApiError as error:
        if error.status not in statuses:
            raise
        raise to(str(error)) from error


def fields(found: object) -> Json:
    """Return an object; an empty one for anything else."""
    return found if isinstance(found, dict) else {}


def items(found: object) -> list[Json]:
    """Return the objects of a list; none for anything else."""
    return [fields(each) for each in found] if isinstance(found, list) else []
