"""What runs in a Python worker of Spark: starts the executor of one container and stays with it.

Whatever ends the task ends the container. The kernel tells the executor when this process dies; the JVM over it, the
daemon between them and the driver are looked after here. The container ends the task too, in order or not: the task
itself always succeeds, with the reason as its result, since it is not Spark that decides what follows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from heron.clock import monotonic_s
from heron.errors import HeronError, SchedulerError, StateError
from heron.ipc.keys import ClientKeys, Speaker, decode_keys
from heron.kernel.job.executor_process import ExecutorProcess
from heron.kernel.job.process_identity import ProcessIdentity
from heron_scheduler_spark.order import Order
from heron_scheduler_spark.predecessor import Predecessor
from heron_scheduler_spark.task_link import TaskLink

__all__ = ["run_container"]

_LOOK_S = 0.1
_SPARKS = ("SPARK_", "_SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHON_WORKER_", "PYTHON_DAEMON_", "PYTHON_UDF_")
_SPARKS_OWN = frozenset({"PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONPATH"})


def run_container(orders: Iterable[str]) -> Iterator[str]:
    """Called by Spark, with one order; gives the reason of the container's end, "" where it has ended for good."""
    for order in orders:
        yield _run(msgspec.json.decode(order, type=Order))


def _run(order: Order) -> str:
    try:
        link = TaskLink(order.endpoint, _keys(order), order.silence_s)
    except (HeronError, OSError) as error:
        return str(error)
    try:
        if link.greet(order.ticket) != "go":
            return "it came too late"
        reason = _stay(order, link)
        link.say("ended", error=reason)
    except HeronError as error:
        return str(error)
    finally:
        link.close()
    return reason


def _stay(order: Order, link: TaskLink) -> str:
    try:
        spec_file, spec = _spec(order)
        predecessor = Predecessor(Path(str(spec["run_dir"])), order.container_id)
        predecessor.end()
        with _environment():
            command = order.command or (sys.executable, "-P", "-m", "heron.executor.main")
            executor = ExecutorProcess(command, spec_file, spec)
    except (HeronError, OSError, ValueError) as error:
        reason = f"container {order.container_id} cannot be started on {os.uname().nodename}: {error}"
        link.say("refused", error=reason)
        return reason
    predecessor.note(executor.identity)
    link.say("up", pid=executor.identity.pid, start=executor.identity.start)
    reason = _watch(order, link, executor)
    predecessor.forget()
    return reason


def _watch(order: Order, link: TaskLink, executor: ExecutorProcess) -> str:
    above = _above()
    why, kill_at_s = "", float("inf")
    while (error := executor.ended()) is None:
        heard = link.heard(_LOOK_S)
        gone = link.lost and f"the Spark driver is gone: {link.lost}"
        gone = gone or ("" if _alive(above) else "the JVM of its Spark executor has ended")
        if (gone or "terminate" in heard) and kill_at_s == float("inf"):
            why = gone
            executor.terminate()
            kill_at_s = monotonic_s() + order.grace_s
        if "kill" in heard or monotonic_s() > kill_at_s:
            executor.kill()
    return why or error


def _keys(order: Order) -> ClientKeys:
    if not order.key_file:
        msg = "keys from the state manager are not there yet"
        raise SchedulerError(msg)
    data = Path(order.key_file).read_bytes()
    return decode_keys(data, f"container {order.container_id}").connecting_as(Speaker.MEMBER)


def _spec(order: Order) -> tuple[Path, dict[str, object]]:
    path = Path(order.spec_file)
    spec = json.loads(path.read_bytes())
    if not isinstance(spec, dict):
        msg = f"spec file {path} does not hold a container's spec"
        raise StateError(msg)
    return path, spec


@contextmanager
def _environment() -> Iterator[None]:
    """What the executor inherits: this process's environment without what Spark has put there."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if _is_sparks(name)}
    try:
        yield
    finally:
        os.environ.update(taken)


def _is_sparks(name: str) -> bool:
    return name in _SPARKS_OWN or name.startswith(_SPARKS)


def _above() -> tuple[int, ProcessIdentity]:
    """The daemon that forked this process, and the JVM that started the daemon."""
    daemon = os.getppid()
    jvm = 0
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{daemon}/stat").read_bytes().rpartition(b")")[2].split()
        jvm = int(fields[1])
    return daemon, ProcessIdentity.of(jvm)


def _alive(above: tuple[int, ProcessIdentity]) -> bool:
    daemon, jvm = above
    return os.getppid() == daemon and (jvm.pid <= 1 or jvm.alive())
