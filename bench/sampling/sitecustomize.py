"""Sample the main thread of a process. The weight of a sample is the processor time since the previous sample.

Python imports a module of this name at the start of each interpreter. Only profiled runs have this folder on their
path.

A timer requests a sample every few milliseconds of processor time, so an idle process takes no samples. A sample is
`[monotonic seconds, processor seconds of the main thread since the last sample, place]`. The place is the innermost
function outside the standard library and extensions, so the time of `pickle` counts for its caller. The process writes
the samples when it ends.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_FOLDER = "HERON_BENCH_SAMPLES"
_ROLES = ("heron.instance.main", "heron.stmgr.main")
_EVERY_S = 0.004
_STANDARD = (str(Path(os.__file__).parent), "<frozen")
_INSTALLED = "site-packages"

Handler = Callable[[int, FrameType | None], Any]


def _begin_if_wanted() -> None:
    """Start sampling if the environment names a folder and this is a process of the tuple path."""
    folder = os.environ.get(_FOLDER)
    if folder and any(role in sys.orig_argv for role in _ROLES):
        _let_timer_pass()
        samples = _Samples(Path(folder) / f"{os.getpid()}.json")
        signal.signal(signal.SIGPROF, samples.take)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)
        atexit.register(samples.write)


class _Samples:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_s = time.thread_time()
        self._taken: list[tuple[float, float, CodeType | None]] = []

    def take(self, _number: int, frame: FrameType | None) -> None:
        """Record a sample."""
        now_s = time.thread_time()
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        self._taken.append((time.monotonic(), now_s - self._last_s, frame.f_code if frame else None))
        self._last_s = now_s

    def write(self) -> None:
        """Stop sampling and write the samples."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        lines = [(at_s, used_s, _place(code)) for at_s, used_s, code in self._taken]
        self._path.write_text(json.dumps(lines), encoding="utf-8")


def _is_ours(filename: str) -> bool:
    return not filename.startswith(_STANDARD) and _INSTALLED not in filename


def _place(code: CodeType | None) -> tuple[str, str]:
    return (code.co_filename, code.co_qualname) if code else ("", "")


def _let_timer_pass() -> None:
    """Let the timer's signal not wake threads that wait for signals: only signals with another handler do."""
    wakeup_fd = -1
    plain_signal = signal.signal

    def set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
        nonlocal wakeup_fd
        before, wakeup_fd = wakeup_fd, fd
        return before

    def install(number: int, handler: Handler | int | None) -> object:
        def handle(number: int, frame: FrameType | None) -> None:
            if wakeup_fd >= 0:
                os.write(wakeup_fd, bytes([number]))
            if callable(handler):
                handler(number, frame)

        timer = number == signal.SIGPROF
        return plain_signal(number, handle if callable(handler) and not timer else handler)

    signal.set_wakeup_fd = set_wakeup_fd
    signal.signal = install  # type: ignore[assignment]  # a different signature, with the same use


_begin_if_wanted()
