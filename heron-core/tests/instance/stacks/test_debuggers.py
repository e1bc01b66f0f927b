"""A debugger that is attached to a task is named, with the time since it is; other trace functions are not."""

from __future__ import annotations

import bdb
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from heron.instance.stacks.debuggers import AttachedDebugger
from heron_testing.fake_clock import FakeClock

TRACED = """
import ctypes, json, os
from heron.instance.stacks.debuggers import AttachedDebugger
before = AttachedDebugger().metrics()
assert ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
print(json.dumps([len(before), *(each.labels["by"] for each in AttachedDebugger().metrics())]), flush=True)
os._exit(0)  # nobody waits for the stops of a traced process
"""


@contextmanager
def tracing(function: object) -> Iterator[None]:
    """The trace function of this thread is another one for a while."""
    former = sys.gettrace()
    sys.settrace(function)  # type: ignore[arg-type]  # any callable
    try:
        yield
    finally:
        sys.settrace(former)


def names(debugger: AttachedDebugger) -> list[str]:
    return [each.labels["by"] for each in debugger.metrics()]


def frame_of(module: str) -> FrameType:
    """A frame of a module of that name."""
    found: dict[str, object] = {"__name__": module}
    exec("import sys\nframe = sys._getframe()", found)  # noqa: S102  # a made-up module
    frame = found["frame"]
    assert isinstance(frame, FrameType)
    return frame


def test_a_trace_function_of_a_debugger_is_one_and_that_of_coverage_is_not() -> None:
    """Coverage is measured in tests, and its trace function is cheap."""
    debugger, traces = AttachedDebugger(), bdb.Bdb()
    traces.reset()
    with tracing(None):
        assert names(debugger) == []
    with tracing(traces.trace_dispatch):
        assert names(debugger) == ["pdb"]
    with tracing(lambda *_: None):
        assert names(debugger) == []


@pytest.mark.parametrize(("module", "name"), [("bdb", "pdb"), ("_pydevd_bundle.pydevd_frame", "debugpy")])
def test_a_debugger_that_stands_on_the_stack_is_remembered_for_a_while(module: str, name: str) -> None:
    """Without breakpoints pdb traces only while it stops, and the task thread publishes nothing meanwhile."""
    clock = FakeClock()
    debugger = AttachedDebugger(clock.monotonic_s)
    with tracing(None):
        debugger.see(frame_of("my.bolts"))
        assert debugger.metrics() == []
        debugger.see(frame_of(module))
        assert names(debugger) == [name]
        clock.advance(9.0)
        (metric,) = debugger.metrics()
        assert (metric.name, metric.value) == ("debugged-s", 9.0)
        clock.advance(2.0)
        assert debugger.metrics() == []
        debugger.see(frame_of(module))
        assert debugger.metrics()[0].value == 0.0, "another session begins again"


def test_a_process_that_traces_this_one_is_named() -> None:
    """As gdb does: the process asks its parent, which is this test, to trace it."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, check=True)
    before, by = json.loads(done.stdout)
    assert before == 0
    assert by.endswith(f" (process {os.getpid()})")
