"""etcd's JSON gateway: transactions, leases, and waiting for a change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import httpx
import msgspec
from heron.errors import StateError, StateUnavailableError

__all__ = ["Answer", "Gateway", "Pair", "delete", "put", "read"]

_TIMEOUT_S = 8.0  # half to connect, half to answer: the contract allows 10 s in all
_AWAY = {502, 503, 504}  # no leader, shutting down, timed out


class Pair(msgspec.Struct):
    """A key with its value, the number of times it was put since its creation, and its lease (0 for none)."""

    key: bytes = b""
    value: bytes = b""
    version: int = 0
    lease: int = 0


class Found(msgspec.Struct):
    """The keys that one step of a transaction read; other steps read nothing."""

    kvs: tuple[Pair, ...] = ()


class Step(msgspec.Struct):
    """The result of one step of a transaction."""

    response_range: Found = msgspec.field(default_factory=Found)


class Header(msgspec.Struct):
    """The revision of etcd at the time of the answer."""

    revision: int = 0


class Answer(msgspec.Struct):
    """The fields of all answers that this driver reads."""

    header: Header = msgspec.field(default_factory=Header)
    succeeded: bool = False
    responses: tuple[Step, ...] = ()
    kvs: tuple[Pair, ...] = ()
    lease: int = msgspec.field(default=0, name="ID")
    version: str = ""

    def read(self, step: int) -> Pair | None:
        """Returns the key that the step with this number read, if there is one."""
        found = self.responses[step].response_range.kvs
        return found[0] if found else None


def read(key: bytes) -> object:
    """Makes a step that reads a key."""
    return {"request_range": {"key": key}}


def put(key: bytes, value: bytes, lease: int = 0) -> object:
    """Makes a step that writes a key."""
    return {"request_put": {"key": key, "value": value, "lease": lease}}


def replace(key: bytes, value: bytes) -> object:
    """Makes a step that writes an existing key, which keeps its lease."""
    return {"request_put": {"key": key, "value": value, "ignore_lease": True}}


def delete(key: bytes) -> object:
    """Makes a step that removes a key."""
    return {"request_delete_range": {"key": key}}


class Gateway:
    """Calls etcd. Thread-safe.

    Every call raises StateUnavailableError if etcd does not answer, and StateError if etcd refuses.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.Client(base_url=f"{url.rstrip('/')}/v3/")

    def transaction(self, compare: Sequence[object], steps: Sequence[object]) -> Answer:
        """Runs all steps if all comparisons hold, and otherwise none."""
        return self.call("kv/txn", {"compare": compare, "success": steps})

    def call(self, path: str, request: object, timeout_s: float = _TIMEOUT_S) -> Answer:
        """Sends one request and returns the answer."""
        with self._translated():
            response = self._client.post(path, content=msgspec.json.encode(request), timeout=timeout_s / 2)
        if response.is_success:
            return msgspec.json.decode(response.content, type=Answer, strict=False)
        kind = StateUnavailableError if response.status_code in _AWAY else StateError
        message = f"etcd at {self._url} refuses {path}: {response.text.strip()}"
        raise kind(message)

    def wait(self, key: bytes, revision: int, timeout_s: float) -> None:
        """Returns when the key has changed at or after the revision, or when the time is over."""
        request = msgspec.json.encode({"create_request": {"key": key, "start_revision": revision}})
        timeout = httpx.Timeout(_TIMEOUT_S / 2, read=timeout_s)
        with (
            self._translated(),
            contextlib.suppress(httpx.ReadTimeout),
            self._client.stream("POST", "watch", content=request, timeout=timeout) as response,
        ):
            lines = response.iter_lines()
            next(lines, None)  # the watch has begun
            next(lines, None)  # a change, or the end of the watch; the caller reads the node in both cases

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            message = f"etcd at {self._url} does not answer: {error}; check that it runs and that the URL is right"
            raise StateUnavailableError(message) from error
