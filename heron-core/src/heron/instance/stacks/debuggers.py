"""Whether a debugger is attached to the task thread: its measurements are then those of the debugger's stops.

A debugger is another process that traces this one (gdb, lldb, strace), a trace function of Python, or one of its calls
on the stack. Without breakpoints pdb traces only while it stops, so the gateway thread looks for it on the stack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from heron.clock import monotonic_s
from heron.ipc.documents.metric_names import DEBUGGED
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["AttachedDebugger"]

_STATUS = Path("/proc/self/status")
_PROC = Path("/proc")
_PACKAGES = {"bdb": "pdb", "pdb": "pdb", "pydevd": "debugpy", "_pydevd_bundle": "debugpy"}
_SEEN_S = 10.0  # an author who steps from tuple to tuple is seen once a second at most


class AttachedDebugger:
    """Who traces a task, and since when. `see` is for the gateway thread, `metrics` for the task thread."""

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._seen, self._seen_at_s = "", float("-inf")
        self._since_s: float | None = None

    def see(self, frame: FrameType | None) -> FrameType | None:
        """Look at the calls of the task thread; return `frame`, the innermost one."""
        if name := next(filter(None, map(_debugger_in, _modules_of(frame))), ""):
            self._seen, self._seen_at_s = name, self._clock()
        return frame

    def metrics(self) -> list[Metric]:
        """For how long a debugger has been attached to the calling thread; empty without one."""
        now_s = self._clock()
        name = _tracing_process() or _trace_function() or (self._seen if now_s - self._seen_at_s < _SEEN_S else "")
        if not name:
            self._since_s = None
            return []
        if self._since_s is None:
            self._since_s = now_s
        return [Metric(DEBUGGED, MetricKind.COUNTER, "s", now_s - self._since_s, {"by": name})]


def _tracing_process() -> str:
    """The process that traces this one; "" without one, or where the kernel does not tell."""
    try:
        lines = _STATUS.read_text().splitlines()
        pid = next(int(line.split()[1]) for line in lines if line.startswith("TracerPid:"))
    except (OSError, StopIteration, ValueError):
        return ""
    if not pid:
        return ""
    try:
        name = (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:  # of another process namespace
        name = "a debugger"
    return f"{name} (process {pid})"


def _trace_function() -> str:
    """The debugger whose trace function the calling thread has; "" without one, or of a measurement of coverage."""
    trace = sys.gettrace()
    owner = getattr(trace, "__self__", trace)
    modules = [getattr(trace, "__module__", None) or "", *(each.__module__ for each in type(owner).__mro__)]
    return next(filter(None, map(_debugger_in, modules)), "")


def _modules_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_globals.get("__name__", "")
        frame = frame.f_back


def _debugger_in(module: str) -> str:
    return _PACKAGES.get(module.partition(".")[0], "")
