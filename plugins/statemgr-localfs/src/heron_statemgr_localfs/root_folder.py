"""The folder of the nodes: made once. One that is gone is never taken for one that has not been made yet."""

from __future__ import annotations

import contextlib
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir
from heron.errors import StateUnavailableError

__all__ = ["open_root", "vanished"]


def open_root(root: Path) -> None:
    """Makes the folder the first time, with a mark beside it (``.NAME.made``), so that it is not made a second time.

    Else a process that is started while the folder is moved away or not mounted would begin an empty one: the
    topologies of the other would seem never to have been, and it could not be moved back.

    Raises:
        StateUnavailableError: when it was there once, and is not now.
        OSError: when it cannot be made.
    """
    mark = root.with_name(f".{root.name}.made")
    if mark.exists() and not root.exists():  # in this order: who makes the folder makes the mark after it
        message = f"{vanished(root)}; if it was removed for good, remove {mark} as well"
        raise StateUnavailableError(message)
    make_private_dir(root)
    if not mark.exists():
        with contextlib.suppress(OSError):  # a place where only the folder itself may be written does without
            mark.touch(mode=0o600)


def vanished(root: Path) -> str:
    """That it is gone, and what to do."""
    return f"the state folder {root} is gone; bring it back (is it mounted?), or choose another 'root'"
