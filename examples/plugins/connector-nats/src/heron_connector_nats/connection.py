"""A client of NATS for a task: the client is asynchronous, and a task is not. So a thread has the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import nats
from heron.errors import UnreachableError
from nats.aio.client import Client
from nats.js import JetStreamContext

__all__ = ["Connection", "Options"]

_log = logging.getLogger(__name__)

Options: TypeAlias = Callable[[], Mapping[str, Any]]
"""Returns arguments of `nats.connect`, such as user and password; called in each task."""

T = TypeVar("T")

_AWAY = (
    concurrent.futures.TimeoutError,
    OSError,
    nats.errors.TimeoutError,
    nats.errors.NoServersError,
    nats.errors.ConnectionClosedError,
)
_ANSWER_S = 10.0
_RECONNECT_S = 0.2
_PAYLOAD_BYTES = 1024 * 1024  # of a server, unless its configuration says otherwise


class Connection:
    """Connects with the first call, and again by itself after an interruption.

    The client ends for good when a server refuses it, as after a new password. The next call has a new client then.
    """

    def __init__(self, servers: Sequence[str], options: Options | None) -> None:
        self._servers = list(servers)
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._trouble = ""  # what the client has reported since the last answer

    def begin(self) -> None:
        """Connect without waiting for it."""
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._connected(), _ANSWER_S), self._loop)

    @property
    def most_bytes(self) -> int:
        """The largest message, with its headers: as the server says, or its default before the first connection."""
        return self._client.max_payload if self._client is not None else _PAYLOAD_BYTES

    def call(self, ask: Callable[[JetStreamContext], Coroutine[Any, Any, T]], wait_s: float = _ANSWER_S) -> T:
        """Ask JetStream, and wait for the answer.

        Raises:
            UnreachableError: when no server answers in time. Whether it has done what was asked is unknown.
        """
        answer = asyncio.run_coroutine_threadsafe(self._asked(ask), self._loop)
        try:
            found = answer.result(wait_s)
        except _AWAY as error:
            answer.cancel()
            reason = f": {self._trouble}" if self._trouble else ""
            msg = f"NATS at {', '.join(self._servers)} does not answer within {wait_s:g} s{reason}"
            raise UnreachableError(msg) from error
        self._trouble = ""
        return found

    def close(self) -> None:
        """Disconnect."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_ANSWER_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_ANSWER_S)
        self._loop.close()

    async def _asked(self, ask: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        return await ask((await self._connected()).jetstream())

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                given = self._options() if self._options is not None else {}
                self._client = await nats.connect(
                    self._servers,
                    error_cb=self._hear,
                    reconnect_time_wait=_RECONNECT_S,
                    max_reconnect_attempts=-1,
                    allow_reconnect=True,
                    **given,
                )
            return self._client

    async def _hear(self, error: Exception) -> None:
        self._trouble = str(error) or type(error).__name__
        _log.warning("nats: %s: %s", type(error).__name__, error)

    async def _end(self) -> None:
        if self._client is not None:
            await self._client.close()
        mine = asyncio.current_task()
        for other in asyncio.all_tasks():
            if other is not mine:
                other.cancel()
