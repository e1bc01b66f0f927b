"""Somebody else's code, called with a time limit: on a thread that is left behind when it takes longer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from heron.errors import PluginError

__all__ = ["within"]

T = TypeVar("T")


def within(limit_s: float, what: str, call: Callable[[], T]) -> T:
    """What `call` returns or raises; an attempt to end the process is only the end of the call.

    Raises:
        PluginError: when it takes longer than `limit_s` seconds, or exits.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # a plugin may raise anything, and it is told below
            errors.append(error)

    thread = threading.Thread(target=run, name=f"limited-{what}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if errors and isinstance(errors[0], Exception):
        raise errors[0]
    if errors:
        msg = f"{what}: raised {type(errors[0]).__name__}: {errors[0]}; a plugin must not end the process"
        raise PluginError(msg) from errors[0]
    if not results:
        msg = f"{what}: not done after {limit_s:g} s; it is left behind"
        raise PluginError(msg)
    return results[0]
