"""What a JVM writes while it starts goes to a logger: the output of a process that embeds Spark belongs to its author.

A starting JVM warns on stderr, for example that Spark uses a module of an incubator. Later its stderr has what the
author's functions print in the Python workers, and Spark's errors: these go to stderr of this process. A worker that
waits for work when Spark stops may lose its connection and print a traceback, of which a signal leaves the first line.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["expect_end", "logged_start"]

_STDERR = 2  # by number: `sys.stderr` may have been replaced
_LINE_BYTES = 16_384  # a longer line becomes several records
_CHUNK_BYTES = 65_536
_TRACEBACK = b"Traceback (most recent call last):"

_ends = threading.Event()  # a process has one JVM at a time


@contextmanager
def logged_start(logger: logging.Logger) -> Iterator[int]:
    """Yields the stdout and stderr for a JVM that starts meanwhile, and logs its lines until then.

    A thread reads them. It ends when the last process that has inherited the stream does.
    """
    reading, writing = os.pipe()
    _ends.clear()
    mark = secrets.token_hex().encode("ascii") + b"\n"
    threading.Thread(target=_read, args=(reading, mark, logger), name="jvm-output", daemon=True).start()
    try:
        yield writing
        os.write(writing, b"\n" + mark)  # it follows all that was written during the start
    finally:
        os.close(writing)  # or the end of the JVM would not be seen


def expect_end() -> None:
    """Call this before Spark stops: from the next traceback on, its output is logged."""
    _ends.set()


def _read(reading: int, mark: bytes, logger: logging.Logger) -> None:
    with open(reading, "rb") as lines, open(_STDERR, "wb", closefd=False) as stderr:
        while (line := lines.readline(_LINE_BYTES)) and line != mark:
            _log(line, logger)
        while chunk := lines.read1(_CHUNK_BYTES):
            printed, traceback, rest = chunk.partition(_TRACEBACK) if _ends.is_set() else (chunk, b"", b"")
            stderr.write(printed)
            stderr.flush()
            if traceback:
                _log(traceback, logger)
                for line in (*rest.splitlines(), *iter(lambda: lines.readline(_LINE_BYTES), b"")):
                    _log(line, logger)


def _log(line: bytes, logger: logging.Logger) -> None:
    if text := line.decode(errors="replace").rstrip():
        logger.warning("the JVM of Spark: %s", text)
