"""Waits for a thread of its own.

`asyncio.to_thread` has few threads for all requests, and the end of the tracker waits for them. What may take seconds
gets a thread that delays no other request and does not outlive the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_daemon"]

T = TypeVar("T")


async def in_daemon(question: Callable[[], T], name: str) -> T:
    """Return what `question` returns in a new thread of that name, or raise what it raises."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def set_outcome(answer: T | None, error: BaseException | None) -> None:
        if future.done():  # the request was given up
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)  # type: ignore[arg-type]  # there is an answer, or an error

    def run() -> None:
        answer, failure = None, None
        try:
            answer = question()
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(set_outcome, answer, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
