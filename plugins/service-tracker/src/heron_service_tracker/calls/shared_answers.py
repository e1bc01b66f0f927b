"""Answers that many requests share: one question at a time about a topology, whatever the number of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from heron_service_tracker.request_errors import BusyError

__all__ = ["SharedAnswers"]

T = TypeVar("T")


class SharedAnswers(Generic[T]):
    """Asks `question` about the topology of a cluster. For one event loop.

    Requests that come meanwhile, or within `kept_s` seconds after the answer or the error, get the same. At most
    `at_a_time` topologies are asked. A request that is given up ends no question of others.
    """

    def __init__(self, question: Callable[[str, str], Awaitable[T]], *, at_a_time: int, kept_s: float = 0.0) -> None:
        self._question = question
        self._at_a_time = at_a_time
        self._kept_s = kept_s
        self._answers: dict[tuple[str, str], asyncio.Future[T]] = {}

    async def get(self, cluster: str, topology: str) -> T:
        """Return the answer; raise what the question raises.

        Raises:
            BusyError: when too many other topologies are being asked.
        """
        place = cluster, topology
        if (answer := self._answers.get(place)) is None:
            under_way = sum(not each.done() for each in self._answers.values())
            if under_way >= self._at_a_time:
                msg = f"the same is being asked about {under_way} other topologies, which is the limit; ask again later"
                raise BusyError(msg)
            answer = self._answers[place] = asyncio.ensure_future(self._question(cluster, topology))
            answer.add_done_callback(lambda done: self._forget_later(place, done))
        return await asyncio.shield(answer)

    def _forget_later(self, place: tuple[str, str], answer: asyncio.Future[T]) -> None:
        if not answer.cancelled():
            answer.exception()  # all requests may have been given up: asyncio would log an error that nobody has read
        asyncio.get_running_loop().call_later(self._kept_s, self._answers.pop, place, None)
