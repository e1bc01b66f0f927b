"""One question for many requests about a topology."""

from __future__ import annotations

import asyncio

import pytest

from heron.errors import UnreachableError
from heron_service_tracker.calls.shared_answers import SharedAnswers
from heron_service_tracker.request_errors import BusyError


class Asked:
    """A question that ends when a test sets `ended`; `number` counts how often it was asked."""

    def __init__(self) -> None:
        self.number = 0
        self.ended = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self, cluster: str, topology: str) -> str:
        """Answer when the test allows it."""
        self.number += 1
        await self.ended.wait()
        if self.error is not None:
            raise self.error
        return f"{cluster}/{topology} {self.number}"


def test_requests_share_an_answer_and_outlive_each_other() -> None:
    """A hundred pages cost what one page costs; one of them is closed."""

    async def run() -> None:
        asked = Asked()
        shared = SharedAnswers(asked.ask, at_a_time=1, kept_s=3600.0)
        first, *others = (asyncio.create_task(shared.get("near", "words")) for _ in range(100))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        asked.ended.set()
        assert set(await asyncio.gather(*others)) == {"near/words 1"}
        assert await shared.get("near", "words") == "near/words 1"  # it is kept

    asyncio.run(run())


def test_too_many_topologies_are_refused_and_not_queued() -> None:
    """A queue would go on after its clients have left."""

    async def run() -> None:
        asked = Asked()
        shared = SharedAnswers(asked.ask, at_a_time=2)
        under_way = [asyncio.create_task(shared.get("near", name)) for name in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="2 other topologies"):
            await shared.get("near", "c")
        asked.ended.set()
        await asyncio.gather(*under_way)
        assert await shared.get("near", "c") == "near/c 3"

    asyncio.run(run())


def test_an_error_is_shared_and_the_next_request_asks_again() -> None:
    """A topology that was away for a moment comes back."""

    async def run() -> None:
        asked = Asked()
        asked.ended.set()
        asked.error = UnreachableError("no answer")
        shared = SharedAnswers(asked.ask, at_a_time=1)
        failed = await asyncio.gather(*(shared.get("near", "words") for _ in range(3)), return_exceptions=True)
        assert failed == [asked.error] * 3
        asked.error = None
        await asyncio.sleep(0)  # the answer is forgotten by the loop
        assert await shared.get("near", "words") == "near/words 2"

    asyncio.run(run())
