"""What a JVM writes while it starts goes to a logger: the output of a process that embeds Spark belongs to its author.

A starting JVM warns on stderr, for example that Spark uses a module of an incubator. Later its stderr has what the
author's functions print in the Python workers, and Spark's errors: these go to stderr of this process.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["logged_start"]

_STDERR = 2  # by number: `sys.stderr` may have been replaced
_LINE_BYTES = 16_384  # a longer line becomes several records
_CHUNK_BYTES = 65_536


@contextmanager
def logged_start(logger: logging.Logger) -> Iterator[int]:
    """Yields the stdout and stderr for a JVM that starts meanwhile, and logs its lines until then.

    A thread reads them. It ends when the last process that has inherited the stream does.
    """
    reading, writing = os.pipe()
    mark = secrets.token_hex().encode("ascii") + b"\n"
    threading.Thread(target=_read, args=(reading, mark, logger), name="jvm-output", daemon=True).start()
    try:
        yield writing
        os.write(writing, b"\n" + mark)  # it follows all that was written during the start
    finally:
        os.close(writing)  # or the end of the JVM would not be seen


def _read(reading: int, mark: bytes, logger: logging.Logger) -> None:
    with open(reading, "rb") as lines, open(_STDERR, "wb", closefd=False) as stderr:
        while (line := lines.readline(_LINE_BYTES)) and line != mark:
            if text := line.decode(errors="replace").rstrip():
                logger.warning("the JVM of Spark: %s", text)
        while chunk := lines.read1(_CHUNK_BYTES):
            stderr.write(chunk)
            stderr.flush()
