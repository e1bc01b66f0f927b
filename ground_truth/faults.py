"""The faults: each is a context manager that holds a fault while it is open, and yields the right diagnoses.

A right diagnosis is its name and its subject, as `heron health` shows them: ``stuck-task enrich/4``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ground_truth.errors import TruthError
from ground_truth.topology_run import TopologyRun
from heron.planner.key_group import DEFAULT_KEY_GROUPS, key_group

__all__ = [
    "Fault",
    "calls_that_hang",
    "debugged_task",
    "debugger",
    "drained_backlog",
    "few_pending",
    "hot_key",
    "hot_key_group",
    "paused_task",
    "restarted_container",
    "restarted_task",
    "slow_key",
    "slow_link",
    "slow_stream_manager",
    "slow_task",
    "slowest_task",
    "stopped_task",
    "switched",
    "switched_task",
    "together",
]

Fault = Callable[[TopologyRun], AbstractContextManager[frozenset[str]]]

_VICTIM, _OTHER = 2, 0  # of the tasks of `enrich`, in the order of their ids
_HOT_SHARE = 0.5
_GROUP_KEYS = 8
_STOPPED_S, _RUNNING_S = 0.6, 0.3
_DEBUGGED_S = 1.2
_PAUSED_S = 6.0  # less than what a stuck task or a stalled source needs to be found
_RARE_SHARE, _RARE_TIMES = 0.03, 20
_LINK_DELAY_S = 1.0
_FEW_PENDING = 2


def _task(run: TopologyRun, index: int = _VICTIM) -> int:
    return run.tasks("enrich")[index]


@contextlib.contextmanager
def stopped_task(run: TopologyRun) -> Iterator[frozenset[str]]:
    """The process of a task is stopped, as by a debugger or a frozen host."""
    task = _task(run, _OTHER)
    with _stopped(run.pid(task_id=task)):
        yield frozenset({f"stuck-task enrich/{task}"})


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def switched(run: TopologyRun, fault: str, details: str, *right: str) -> Iterator[frozenset[str]]:
    """A fault of the author's own code."""
    run.switch(fault, details)
    try:
        yield frozenset(right)
    finally:
        run.switch_off(fault)


def switched_task(fault: str, diagnosis: str) -> Fault:
    """A fault of the author's own code that only one task has."""

    def hold(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
        task = _task(run)
        return switched(run, fault, str(task), f"{diagnosis} enrich/{task}")

    return hold


def calls_that_hang(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """A call of the author's code never returns."""
    return switched_task("hang", "stuck-task")(run)


def slow_task(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """One task takes four times as long for the same input."""
    task = _task(run)
    return switched(run, "slow", f"4 {task}", f"slow-task enrich/{task}")


def slowest_task(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """One task takes twenty times as long for the same input."""
    task = _task(run)
    return switched(run, "slow", f"20 {task}", f"slow-task enrich/{task}")


@contextlib.contextmanager
def slow_key(run: TopologyRun) -> Iterator[frozenset[str]]:
    """Three of a hundred orders are of one customer, and each of these takes twenty times as long."""
    customer = "customer-7"
    with (
        switched(run, "hot", f"{_RARE_SHARE} {customer}"),
        switched(run, "slow-key", f"{_RARE_TIMES} {customer}"),
    ):
        yield frozenset({f"slow-key enrich/{_owner(run, customer)}"})


def drained_backlog(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """The source gives nothing for some seconds. Then it gives at once what has come meanwhile."""
    return _for_a_while(switched(run, "stall", ""))


def paused_task(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """A task is stopped for some seconds. Then it catches up, and executes more than the others."""
    return _for_a_while(_stopped(run.pid(task_id=_task(run))))


@contextlib.contextmanager
def _for_a_while(fault: AbstractContextManager[object]) -> Iterator[frozenset[str]]:
    """A fault that ends by itself while the topology is observed."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(fault)
        timer = threading.Timer(_PAUSED_S, stack.close)
        timer.start()
        try:
            yield frozenset()
        finally:
            timer.cancel()
            timer.join()


@contextlib.contextmanager
def restarted_task(run: TopologyRun) -> Iterator[frozenset[str]]:
    """A task dies once, and catches up after its restart."""
    os.kill(run.pid(task_id=_task(run)), signal.SIGKILL)
    yield frozenset()


@contextlib.contextmanager
def restarted_container(run: TopologyRun) -> Iterator[frozenset[str]]:
    """All processes of a container die once, as when its host is restarted. Its tasks catch up."""
    for pid in run.pids_of(2):
        os.kill(pid, signal.SIGKILL)
    yield frozenset()


def debugged_task(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """A task runs for a fifth of the time, as under a debugger that stops at each breakpoint."""
    task = _task(run)
    return _pulsed(run.pid(task_id=task), _DEBUGGED_S, f"slow-task enrich/{task}")


def debugger(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """A task with keys stops in pdb at every 50th tuple, for 3 s."""
    return switched_task("debugger", "debugged-task")(run)


def hot_key(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """Half of the orders are of one customer."""
    customer = "customer-7"
    return switched(run, "hot", f"{_HOT_SHARE} {customer}", f"hot-key enrich/{_owner(run, customer)}")


def hot_key_group(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """Half of the orders are of several customers, whose keys are in one key group."""
    group = _group("customer-7")
    names = (name for each in itertools.count() if _group(name := f"customer-{each}") == group)
    keys = list(itertools.islice(names, _GROUP_KEYS))
    details = f"{_HOT_SHARE} {' '.join(keys)}"
    return switched(run, "hot", details, f"hot-key-group enrich/{_owner(run, keys[0])}")


def _group(customer: str) -> int:
    return key_group((customer,), DEFAULT_KEY_GROUPS)


def _owner(run: TopologyRun, customer: str) -> int:
    """The task of a key: before any update, each task owns one range of the groups."""
    tasks = run.tasks("enrich")
    return tasks[_group(customer) * len(tasks) // DEFAULT_KEY_GROUPS]


def slow_stream_manager(run: TopologyRun) -> AbstractContextManager[frozenset[str]]:
    """The stream manager of container 2 runs for a third of the time only."""
    return _pulsed(run.pid(container_id=2, process="stmgr"), _STOPPED_S, "slow-stream-manager container 2")


@contextlib.contextmanager
def _pulsed(pid: int, stopped_s: float, right: str) -> Iterator[frozenset[str]]:
    """A process is stopped again and again."""
    over = threading.Event()

    def pulse() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not over.is_set():
                with _stopped(pid):
                    over.wait(stopped_s)
                over.wait(_RUNNING_S)

    thread = threading.Thread(target=pulse)
    thread.start()
    try:
        yield frozenset({right})
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def slow_link(run: TopologyRun) -> Iterator[frozenset[str]]:
    """All bytes between the two containers arrive later."""
    relay = run.site.relay
    if relay is None:
        msg = "the topology runs without a relay between its containers"
        raise TruthError(msg)
    relay.delay_s = _LINK_DELAY_S
    try:
        yield frozenset({"slow-link container 1", "slow-link container 2"})
    finally:
        relay.delay_s = 0.0


@contextlib.contextmanager
def few_pending(run: TopologyRun) -> Iterator[frozenset[str]]:
    """The spout may have few tuples in flight, so it waits for acks although nothing is busy."""
    run.configure(f"orders:topology.max.spout.pending={_FEW_PENDING}")
    yield frozenset({"too-few-pending orders"})


def together(*faults: Fault) -> Fault:
    """Several faults at once; each of their diagnoses is right, and all shall be found."""

    @contextlib.contextmanager
    def hold(run: TopologyRun) -> Iterator[frozenset[str]]:
        with contextlib.ExitStack() as stack:
            right = [stack.enter_context(fault(run)) for fault in faults]
            yield frozenset().union(*right)

    return hold
