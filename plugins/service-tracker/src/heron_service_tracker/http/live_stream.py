"""Live values as server-sent events.

A stream keeps no queue: after a change it sends the newest value. A client that reads slowly gets fewer values, and one
that does not read is disconnected. So no client costs more than the buffer of its socket.

The streams of a topology change at the same moment, and a send takes up to a millisecond. They take turns, and other
requests are answered in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.request_errors import UnknownPlaceError
from heron_service_tracker.watches.observations import Observations

__all__ = ["LiveStream"]

_KEEP_ALIVE_S = 15.0  # proxies close connections that are silent for a minute
_SEND_S = 30.0  # a client that takes nothing for this long is gone
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

Encode = Callable[[ObservedTopology], bytes]


class LiveStream(Response):
    """One response that goes on until the client leaves, the topology is gone or the tracker ends."""

    def __init__(
        self,
        observations: Observations,
        place: tuple[str, str],
        encode: Encode,
        ended: asyncio.Event,
        turns: asyncio.Lock,
    ) -> None:
        super().__init__()
        self._observations = observations
        self._cluster, self._topology = place
        self._encode = encode
        self._ended = ended
        self._turns = turns

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; Starlette calls it."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        changed.set()

        def listener(_topology: ObservedTopology) -> None:
            loop.call_soon_threadsafe(changed.set)

        self._observations.listen(self._cluster, self._topology, listener)
        sender = asyncio.create_task(self._send_all(changed, send))
        leaving = asyncio.create_task(_left(receive))
        ending = asyncio.create_task(self._ended.wait())
        tasks = (sender, leaving, ending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not leaving.done() and not (sender.done() and sender.exception()):
                sender.cancel()
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._observations.forget(self._cluster, self._topology, listener)
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_all(self, changed: asyncio.Event, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        revision = -1
        while True:
            async with self._turns:
                await asyncio.sleep(0)  # a turn of the loop; the send itself may have to wait for the client
            changed.clear()
            try:
                topology = self._observations.topology(self._cluster, self._topology)
            except UnknownPlaceError as gone:
                text = msgspec.json.encode({"detail": str(gone)}).decode()
                await self._send(send, f"event: gone\ndata: {text}\n\n".encode())
                return
            if topology.revision != revision:
                revision = topology.revision
                await self._send(send, b"event: topology\ndata: " + self._encode(topology) + b"\n\n")
            else:
                await self._send(send, b": alive\n\n")
            del topology  # held until the next change, its metrics would be freed here, which takes milliseconds
            try:
                await asyncio.wait_for(changed.wait(), _KEEP_ALIVE_S)
            except TimeoutError:
                continue

    async def _send(self, send: Send, body: bytes) -> None:
        async with asyncio.timeout(_SEND_S):
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
