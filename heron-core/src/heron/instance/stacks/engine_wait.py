"""What the engine waits for in the calls of a thread, and the innermost call of the task thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType

from heron.driver_kit.code_origin import CodeOrigin, code_origin

__all__ = ["codes_of", "engine_wait", "main_thread_frame"]

_ENGINE_WAITS = {"DataIn.wait": "input", "DataOut.wait_for_room": "room for its output"}


def main_thread_frame() -> FrameType | None:
    """The innermost frame of the thread that runs the component."""
    return sys._current_frames().get(threading.main_thread().ident or 0)


def codes_of(frame: FrameType | None) -> Iterator[CodeType]:
    """The code of each call of a thread, the innermost first."""
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def engine_wait(calls: Iterable[CodeType]) -> str:
    """What the engine's innermost calls wait for, unless they wait on behalf of other code."""
    for code in calls:
        origin = code_origin(code.co_filename)
        if origin is CodeOrigin.USER:
            return ""
        if origin is CodeOrigin.ENGINE and code.co_qualname in _ENGINE_WAITS:
            return _ENGINE_WAITS[code.co_qualname]
    return ""
