"""What spouts and bolts have in common: a logger."""

from __future__ import annotations

import functools
import logging

from heron.errors import UsageError, known, nearest

__all__ = ["BaseComponent"]

_LEVELS = {
    "trace": logging.DEBUG,  # the standard library has nothing finer
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class BaseComponent:
    """The root of spouts and bolts. The engine constructs each with ``cls(delegate=collector)``."""

    def __init__(self, delegate: object = None) -> None:
        self.delegate = delegate

    @functools.cached_property
    def logger(self) -> logging.Logger:
        """The component's logger, named after its module and class."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    def log(self, message: str, level: str | None = None) -> None:
        """Logs a message at `level`: trace, debug, info (the default), warn or error.

        Raises:
            UsageError: when the level is none of these.
        """
        number = _LEVELS.get(level or "info")
        if number is None:
            msg = f"log: unknown level {level!r}{nearest(str(level), _LEVELS)}; known: {known(_LEVELS)}"
            raise UsageError(msg)
        self.logger.log(number, "%s", message, stacklevel=2)
