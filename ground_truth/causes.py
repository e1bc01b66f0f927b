"""The causes that are injected, each with its load, its site, and the right diagnosis; and the healthy loads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from ground_truth.faults import (
    Fault,
    calls_that_hang,
    debugged_task,
    debugger,
    drained_backlog,
    few_pending,
    hot_key,
    hot_key_group,
    paused_task,
    restarted_container,
    restarted_task,
    slow_key,
    slow_link,
    slow_stream_manager,
    slow_task,
    slowest_task,
    stopped_task,
    switched,
    switched_task,
    together,
)
from ground_truth.host_faults import busy_host, full_memory, low_priority, throttled_container
from ground_truth.sites import SiteOf, full_outlets, hosts, machine, memory_limits
from ground_truth.topology_run import Load, TopologyRun

__all__ = ["CAUSES", "HEALTHY", "Cause", "Healthy"]

_LIFE_S = 12.0  # so that the tasks have a life before the window, with which their calls can be compared
# The service takes nearly all the time of a task, so that neither a run nor its noise needs a processor.
CALLS = Load("orders.py", "orders")
# Two tasks with a third of a processor each: enough for them to suffer beside other work.
WORK = Load("orders.py", "orders", ("--enrich", "2", "--call", "0.005", "--work", "0.0045"))
ACKS = Load("orders.py", "orders", ("--acks",))
# Both containers are on this machine. Work that takes one of its processors leaves the others to all that runs there.
SAME_HOST = ("slow-host container 1",)
# 0.6 MB/s, half of it between the containers
BYTES = Load("orders.py", "orders", ("--payload", "4000"))
SHUFFLED = Load("orders.py", "orders", ("--shuffle", "--payload", "4000"))
SHUFFLED_WORK = Load("orders.py", "orders", ("--shuffle", *WORK.arguments))


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: its name, what happens (for people), how it is injected, and under which load and where.

    `before_s` is for how long no round has found anything before. `invites` is a wrong diagnosis that the same
    measurements suggest. `also` are diagnoses that the fault makes true as well, beyond those that are asked for.
    """

    name: str
    text: str
    fault: Fault
    load: Load = CALLS
    site_of: SiteOf = machine
    before_s: float = 3.0
    invites: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Healthy:
    """A load without a fault."""

    name: str
    text: str
    load: Load


def _of(fault: str, details: str, *right: str) -> Fault:
    def hold(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
        return switched(run, fault, details, *right)

    return hold


CAUSES = (
    Cause("stopped-task", "a task's process is stopped (SIGSTOP)", stopped_task),
    Cause("hanging-call", "a call of the author's code never returns", calls_that_hang),
    Cause("slow-task", "one task takes 4 times as long for each tuple", slow_task),
    Cause("busy-host", "other processes use a container's processor", busy_host, WORK, also=SAME_HOST),
    Cause("throttled", "a cgroup limits a container to 8 % of a processor", throttled_container, WORK),
    Cause(
        "low-priority",
        "a container has a fifth of the cgroup shares of other work on its processor",
        low_priority,
        WORK,
        also=SAME_HOST,
    ),
    Cause(
        "slow-service",
        "calls of a service take 3 times as long",
        _of("slow", "3", "slow-external-service enrich"),
        before_s=_LIFE_S,
    ),
    Cause("hot-key", "half of all tuples have one key", hot_key),
    Cause("hot-key-group", "half of all tuples have 8 keys of one key group", hot_key_group),
    Cause("few-pending", "a spout may have 2 tuples in flight", few_pending, ACKS),
    Cause("slow-link", "a relay delays data between two containers by 1 s", slow_link, BYTES, hosts),
    Cause("slow-stream-manager", "a stream manager runs a third of the time", slow_stream_manager),
    Cause("memory-leak", "a task keeps 300 kB of each tuple", switched_task("leak", "memory-growth")),
    Cause("full-memory", "a container uses 95 % of its memory limit", full_memory, CALLS, memory_limits),
    Cause("garbage", "a task collects garbage after each tuple", switched_task("garbage", "garbage")),
    Cause(
        "crash-loop",
        "a task's process is killed at its first tuple, again and again",
        switched_task("crash", "restart-loop"),
    ),
    Cause("stalled-source", "a source gives no tuples, and they wait there", _of("stall", "", "stalled-source orders")),
    Cause(
        "more-load",
        "the source becomes 2.5 times as fast",
        _of("load", "2.5", "under-provisioned enrich"),
        before_s=_LIFE_S,
    ),
    Cause("less-load", "the source becomes half as fast", _of("load", "0.5", "over-provisioned enrich")),
    Cause(
        "two-at-once",
        "one task is stopped, and another one collects garbage",
        together(stopped_task, switched_task("garbage", "garbage")),
    ),
    Cause(
        "slow-shuffled-task",
        "one task of a shuffle takes 20 times as long, and its siblings idle behind held spouts",
        slowest_task,
        SHUFFLED,
        full_outlets,
        invites="data-skew",
    ),
    Cause(
        "busy-host-shuffled",
        "other processes use a container's processor, and a shuffle gives its tasks as much as the others",
        busy_host,
        SHUFFLED_WORK,
        invites="slow-task",
        also=SAME_HOST,
    ),
    Cause(
        "debugged-task", "a task of a shuffle runs a fifth of the time", debugged_task, SHUFFLED, invites="slow-host"
    ),
    Cause("debugger", "pdb stops a task with keys at every 50th tuple, for 3 s", debugger, invites="slow-key"),
    Cause("slow-key", "3 % of all tuples have one key, which takes 20 times as long", slow_key, invites="slow-task"),
    Cause(
        "drained-backlog",
        "a source gives nothing for 6 s, then all that has come, and the backlog drains",
        drained_backlog,
        before_s=_LIFE_S,
        invites="under-provisioned",
    ),
    Cause("paused-task", "a task is stopped for 6 s, and catches up", paused_task, invites="data-skew"),
    Cause("restarted-task", "a task dies once, and catches up", restarted_task, invites="restart-loop"),
    Cause(
        "paused-shuffled-task",
        "a task of a shuffle is stopped for 6 s, and catches up",
        paused_task,
        SHUFFLED,
        invites="slow-task",
    ),
    Cause(
        "slow-link-shuffled",
        "a relay delays data between two containers by 1 s, and a shuffle gives their tasks as much as the others",
        slow_link,
        SHUFFLED,
        hosts,
        invites="slow-task",
    ),
    Cause(
        "restarted-container",
        "all processes of a container die once, and its tasks catch up",
        restarted_container,
        invites="unreachable-peer",
    ),
)

HEALTHY = (
    Healthy(
        "word-count",
        "one task per component, at a third of its capacity",
        Load("orders.py", "orders", ("--enrich", "1", "--rate", "40", "--call", "0.004", "--work", "0.004")),
    ),
    Healthy("bursts", "four tasks; the source emits in bursts", Load("orders.py", "orders", ("--burst", "1.5"))),
    Healthy("join", "two streams joined by key in windows of 5 s", Load("joined.py", "joined")),
)
