"""Live streams on one event loop, without a server."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from heron_service_tracker.http.live_stream import LiveStream
from heron_service_tracker.watches.observations import Observations

STREAMS = 5


def test_other_requests_are_answered_between_the_sends_of_many_pages(observations: Observations) -> None:
    """The pages of a topology get a new value at the same moment. A hundred sends in a row are a tenth of a second."""
    order: list[str] = []

    async def send(message: Message) -> None:
        if b"event: topology" in message.get("body", b""):
            order.append("value")

    async def never_leave() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def follow() -> None:
        ended, turns = asyncio.Event(), asyncio.Lock()
        streams = [
            LiveStream(observations, ("near", "words"), lambda _: b"{}", ended, turns)({}, never_leave, send)
            for _ in range(STREAMS)
        ]
        pages = asyncio.gather(*streams)
        async with asyncio.timeout(20.0):
            while order.count("value") < STREAMS:
                order.append("other request")
                await asyncio.sleep(0)
        ended.set()
        await pages

    asyncio.run(follow())
    values = [at for at, each in enumerate(order) if each == "value"]
    assert len(values) == STREAMS
    assert all(order[at + 1] == "other request" for at in values[:-1])
