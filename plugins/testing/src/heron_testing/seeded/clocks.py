"""Replaces the clock and the chance of this interpreter, before the first import of an engine module.

The engine's only module that reads time is `heron.clock`, which takes the functions of `time` when it is imported. So a
process decides at its start that it simulates, and no tuple pays for a choice. An author's code that reads `time` gets
the simulated time too.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from heron_testing.seeded.world import READING_NS, STARTED_AT_NS, World

if TYPE_CHECKING:
    from heron.planner.physical_plan import PhysicalPlan

__all__ = ["install"]

_SECOND = 1_000_000_000
_PLANS_KEPT = 16  # each process of a topology decodes each plan, and gets it soon after the others


def install() -> None:
    """Replaces them for the life of this process.

    Raises:
        RuntimeError: when an engine module was imported before, or the order of sets is random.
    """
    if "heron.clock" in sys.modules:
        message = "heron.clock was imported before; install the simulated clock first"
        raise RuntimeError(message)
    if os.environ.get("PYTHONHASHSEED") != "0":
        message = "the order of sets is random; set PYTHONHASHSEED=0"
        raise RuntimeError(message)
    World.present = World(0)
    replaced = {
        (time, "monotonic_ns"): _monotonic_ns,
        (time, "time_ns"): _wall_ns,
        (time, "monotonic"): _monotonic_s,
        (time, "time"): lambda: World.present.read_wall_ns() / _SECOND,
        (time, "thread_time"): _monotonic_s,
        (time, "process_time"): _monotonic_s,
        (time, "clock_gettime"): lambda _clock: World.present.read_monotonic_ns() / _SECOND,
        (time, "sleep"): _sleep,
        (secrets, "randbits"): _randbits,
        (socket, "gethostname"): lambda: "simulated",
    }
    for (module, name), function in replaced.items():
        setattr(module, name, function)
    logging.setLogRecordFactory(_log_record)
    _share_work()


def _share_work() -> None:
    """Leaves out what all processes do alike, or what only tells of the real machine. No result reads a clock."""
    from heron.instance.stacks import debuggers  # noqa: PLC0415 - after the clock
    from heron.ipc import process_metrics  # noqa: PLC0415
    from heron.kernel.own_cgroup import OwnCgroup  # noqa: PLC0415
    from heron.metricsmgr.host_metrics import HostMetrics  # noqa: PLC0415
    from heron.state_nodes import plans  # noqa: PLC0415

    decode = plans.decode_physical_plan
    decoded: OrderedDict[bytes, PhysicalPlan] = OrderedDict()

    def decode_once(data: bytes, place: str) -> PhysicalPlan:
        plan = decoded.get(data)
        if plan is None:
            plan = decoded[data] = decode(data, place)
            if len(decoded) > _PLANS_KEPT:
                decoded.popitem(last=False)
        return plan

    replaced = {
        (plans, "decode_physical_plan"): decode_once,
        (process_metrics, "_resident_bytes"): lambda peak_bytes: peak_bytes,
        (process_metrics, "cpu_wait_metrics"): list,
        (HostMetrics, "metrics"): lambda _host: (),
        (debuggers, "_tracing_process"): str,
        (OwnCgroup, "memory_kills"): lambda _cgroup: None,
    }
    for (owner, name), function in replaced.items():
        setattr(owner, name, function)


def _monotonic_s() -> float:
    world = World.present  # without a call: a run reads it 20,000 times
    world.now_ns += READING_NS
    return (STARTED_AT_NS + world.now_ns) / _SECOND


def _monotonic_ns() -> int:
    return World.present.read_monotonic_ns()


def _wall_ns() -> int:
    return World.present.read_wall_ns()


def _sleep(seconds: float) -> None:
    """Of an author's code; the engine waits for events."""
    if World.present.current is not None:
        World.present.current.sleep(seconds)


def _log_record(*args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: ANN401 - those of `logging.LogRecord`
    """A record does not take time, so a run with a trace is the run without one."""
    now_ns = World.present.now_ns
    record = logging.LogRecord(*args, **kwargs)
    World.present.now_ns = now_ns
    return record


def _randbits(bits: int) -> int:
    return World.present.draw.getrandbits(bits)
