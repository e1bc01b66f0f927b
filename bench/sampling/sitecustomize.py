"""Samples of what the main thread of a process runs, each worth the processor time since the one before.

Interpreters import a module of this name at their start, before anything else.

A timer of the system asks for one every few milliseconds of processor time, so that an idle process takes none. Each is
`[monotonic seconds, processor seconds of the main thread since the last, place]`; a place is the innermost function
that is not the standard library's or an extension's: what `pickle` takes counts for who called it. They are written
when the process ends. Only a run that is profiled has this folder on its path.
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
    """Begins when the environment says where the samples go and this is a process of the tuple path."""
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
        """Notes one."""
        now_s = time.thread_time()
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        self._taken.append((time.monotonic(), now_s - self._last_s, frame.f_code if frame else None))
        self._last_s = now_s

    def write(self) -> None:
        """Ends the sampling and writes what was noted."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        lines = [(at_s, used_s, _place(code)) for at_s, used_s, code in self._taken]
        self._path.write_text(json.dumps(lines), encoding="utf-8")


def _is_ours(filename: str) -> bool:
    return not filename.startswith(_STANDARD) and _INSTALLED not in filename


def _place(code: CodeType | None) -> tuple[str, str]:
    return (code.co_filename, code.co_qualname) if code else ("", "")


def _let_timer_pass() -> None:
    """Keeps the timer's signal from waking who waits for signals: only those that have another handler do."""
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
    signal.signal = install  # type: ignore[assignment]  # the same but for who may see the result


_begin_if_wanted()
