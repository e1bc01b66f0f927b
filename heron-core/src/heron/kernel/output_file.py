"""What a child writes to stdout and stderr: a file that cannot grow for ever, as whoever prints a line a tuple finds.

The child keeps its descriptor, so the file cannot be renamed under it: it is copied and emptied. What is written in the
moment between the two is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from heron.driver_kit.log import OLDER_FILES

__all__ = ["empty_when_full"]


def empty_when_full(output: Path, max_bytes: int) -> bool:
    """Copies a file that has reached `max_bytes` to ``.1``, what was there to ``.2``, and empties it.

    Raises:
        OSError: when the file system does not let it; when there is no room for the copy, the file is emptied all the
            same.
    """
    try:
        if output.stat().st_size < max_bytes:
            return False
    except FileNotFoundError:
        return False
    names = [output, *(output.with_name(f"{output.name}.{number}") for number in range(1, OLDER_FILES + 1))]
    try:
        for older, newer in zip(reversed(names[2:]), reversed(names[1:-1]), strict=True):
            if newer.exists():
                newer.replace(older)
        shutil.copy(output, names[1])  # with its mode
    finally:
        os.truncate(output, 0)
    return True
