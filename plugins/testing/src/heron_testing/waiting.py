"""Waits for what another process or thread changes: a condition with a deadline that only ends a hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from heron.clock import monotonic_s

__all__ = ["Eventually", "wait_until", "wait_until_grown"]

T = TypeVar("T")

_SHORTEST_S, _LONGEST_S = 0.01, 0.25
_REST = 3


class Eventually(Protocol):
    """The type of the fixture `eventually`."""

    def __call__(self, predicate: Callable[[], T], timeout_s: float = 60.0, what: str = "") -> T:
        """Wait until `predicate` returns a true value, and return that value."""
        ...


def wait_until(predicate: Callable[[], T], timeout_s: float = 60.0, what: str = "") -> T:
    """Call `predicate` until it returns a true value, and return that value.

    Between two calls it pauses for three times as long as the call took, and for 10 to 250 ms, so that calls which
    cost much leave the processor to what they wait for.

    Raises:
        AssertionError: after `timeout_s` seconds; names `what` and the last value.
    """
    called_s = monotonic_s()
    deadline = called_s + timeout_s
    pause = threading.Event()
    while not (value := predicate()):
        now_s = monotonic_s()
        if now_s > deadline:
            msg = f"not within {timeout_s} s: {what or predicate}; last value {value!r}"
            raise AssertionError(msg)
        pause.wait(min(max(_SHORTEST_S, _REST * (now_s - called_s)), _LONGEST_S))
        called_s = monotonic_s()
    return value


def wait_until_grown(read: Callable[[], float], timeout_s: float = 60.0, what: str = "", by: float = 0) -> None:
    """Wait until `read` returns more than its present value and `by`; the pauses are those of `wait_until`.

    Raises:
        AssertionError: after `timeout_s` seconds; names `what`.
    """
    before = read()
    wait_until(lambda: read() > before + by, timeout_s, what)
