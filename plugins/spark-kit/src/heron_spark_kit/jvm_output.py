"""What a JVM writes to stdout goes to a logger: the stdout of a process that embeds Spark belongs to its author.

These lines are the JVM's own, for example that Spark uses a module of an incubator. On stderr are Spark's errors and
what the author's functions print in the Python workers, so it stays as it is.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["logged_stdout"]

_LINE_BYTES = 16_384  # of longer lines only the beginning is logged


@contextmanager
def logged_stdout(logger: logging.Logger) -> Iterator[int]:
    """Yields the stdout for a JVM that is started meanwhile: each line is a record of the logger.

    A thread reads it, which ends when the last process that has inherited it does.
    """
    reading, writing = os.pipe()
    threading.Thread(target=_log, args=(reading, logger), name="jvm-stdout", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)  # or the end of the JVM would not be seen


def _log(reading: int, logger: logging.Logger) -> None:
    with open(reading, "rb") as lines:
        begins = True
        while line := lines.readline(_LINE_BYTES):
            text = line.decode(errors="replace").rstrip()
            if begins and text:
                logger.info("%s", text)
            begins = line.endswith(b"\n")
