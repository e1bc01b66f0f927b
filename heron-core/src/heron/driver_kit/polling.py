"""Waiting, for so long, for something that is only seen by looking."""

from __future__ import annotations

import threading
from collections.abc import Callable

from heron.clock import monotonic_s

__all__ = ["wait_for"]


def wait_for(over: Callable[[], bool], patience_s: float, look_s: float) -> bool:
    """Looks at once and then every `look_s` seconds; False when it is not over after `patience_s`."""
    deadline_s = monotonic_s() + patience_s
    pause = threading.Event()
    while not over():
        if monotonic_s() > deadline_s:
            return False
        pause.wait(look_s)
    return True
