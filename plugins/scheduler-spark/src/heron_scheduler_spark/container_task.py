"""What runs in a Python worker of Spark: starts the executor of one container and stays with it.

Whatever ends the task ends the container. The kernel tells the executor when this process dies; the JVM over it, the
daemon between them and the driver are looked after here. The container ends the task too, in order or not: the task
itself always succeeds, with the reason as its result, since it is not Spark that decides what follows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.links import ClientKeys, Speaker, decode_keys
from heron.driver_kit.private_files import write_private
from heron.errors import HeronError, StateError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.executor_process import ExecutorProcess, own_run_dir
from heron_scheduler_spark.container_logs import ContainerLogs
from heron_scheduler_spark.order import Order
from heron_scheduler_spark.predecessor import Predecessor
from heron_scheduler_spark.shipped_code import shipped_code
from heron_scheduler_spark.stale_run_dirs import sweep
from heron_scheduler_spark.task_link import TaskLink
from heron_scheduler_spark.task_words import Ended, Refused, Up, Word
from heron_scheduler_spark.travelling_spec import resolved_spec
from heron_scheduler_spark.worker_report import check_core

__all__ = ["run_container"]

Spec = dict[str, object]

_LOOK_S = 0.1
_SPARKS = ("SPARK_", "_SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHON_WORKER_", "PYTHON_DAEMON_", "PYTHON_UDF_")
_SPARKS_OWN = frozenset({"PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONPATH"})


def run_container(orders: Iterable[str]) -> Iterator[str]:
    """Called by Spark, with one order; gives the reason of the container's end, "" where it has ended for good."""
    for order in orders:
        yield _run(msgspec.json.decode(order, type=Order))


def _run(order: Order) -> str:
    try:
        check_core(order.core)
        spec = _spec(order)
        link = TaskLink(order.endpoint, _keys(order, spec), order.silence_s)
    except (HeronError, OSError, ValueError) as error:
        return f"on {os.uname().nodename}: {error}"
    try:
        if link.greet(order.ticket) is not Word.GO:
            return "it came too late"
        reason = _stay(order, spec, link)
    except HeronError as error:
        return str(error)
    finally:
        link.close()
    return reason


def _stay(order: Order, spec: Spec, link: TaskLink) -> str:
    run_dir = Path(str(spec["run_dir"]))
    predecessor = Predecessor(run_dir, order.container_id)
    logs: ContainerLogs | None = None
    try:
        own_run_dir(run_dir)
        predecessor.end()
        if order.spec is not None:
            sweep(run_dir)
        spec_file, logs = (Path(order.spec_file), None) if order.spec is None else _settle(order, spec, link)
        executor = _execute(order, spec_file, spec, predecessor)
    except (HeronError, OSError, ValueError) as error:
        if order.spec is not None:
            if logs is not None:
                logs.close()
            with suppress(OSError):  # nobody has read it
                _spec_file(run_dir, order).unlink(missing_ok=True)
            predecessor.leave()
        reason = f"container {order.container_id} cannot be started on {os.uname().nodename}: {error}"
        if isinstance(error, OSError) and Path(str(error.filename or run_dir)).is_relative_to(run_dir.parent):
            reason += f"; run.run_dir, {run_dir.parent}, needs room there, and must be writable"
        link.say(Refused(reason))
        link.say(Ended(reason))
        return reason
    link.say(Up(executor.identity.pid, executor.identity.start))
    reason = _watch(order, link, executor, logs)
    if logs is not None:
        logs.close()
        spec_file.unlink(missing_ok=True)
    predecessor.forget()
    link.say(Ended(reason, executor.at_fault))
    return reason


def _execute(order: Order, spec_file: Path, spec: Spec, predecessor: Predecessor) -> ExecutorProcess:
    """Starts the executor and notes it, or neither."""
    with _environment(shipped_code(order.py_files, sys.path)):
        command = order.command or (sys.executable, "-P", "-m", "heron.executor.main")
        executor = ExecutorProcess(command, spec_file, spec)
    try:
        predecessor.note(executor.identity)
    except OSError:
        executor.kill_now()
        raise
    return executor


def _settle(order: Order, spec: Spec, link: TaskLink) -> tuple[Path, ContainerLogs]:
    """Writes the spec where the executor reads it, with a log folder of the container's own."""
    run_dir, there = Path(str(spec["run_dir"])), str(spec["log_dir"])
    folder = run_dir / f"c{order.container_id}.logs"
    logs = ContainerLogs(folder, f"heron {spec['topology']} container {order.container_id}", link)
    here = json.dumps(str(folder))[1:-1]
    spec["log_dir"] = str(folder)
    spec["sinks"] = json.loads(json.dumps(spec["sinks"]).replace(json.dumps(there)[1:-1], here))
    spec_file = _spec_file(run_dir, order)
    try:
        write_private(spec_file, json.dumps(spec).encode())
    except OSError:
        logs.close()
        raise
    return spec_file, logs


def _spec_file(run_dir: Path, order: Order) -> Path:
    return run_dir / f"c{order.container_id}.json"


def _watch(order: Order, link: TaskLink, executor: ExecutorProcess, logs: ContainerLogs | None) -> str:
    above = _above()
    why, kill_at_s = "", float("inf")
    while (error := executor.ended()) is None:
        if logs is not None:
            logs.look()
        heard = link.heard(_LOOK_S)
        gone = link.lost and f"the Spark driver is gone: {link.lost}"
        gone = gone or ("" if _alive(above) else "the JVM of its Spark executor has ended")
        if (gone or Word.TERMINATE in heard) and kill_at_s == float("inf"):
            why = gone
            executor.terminate()
            kill_at_s = monotonic_s() + order.grace_s
        if Word.KILL in heard or monotonic_s() > kill_at_s:
            executor.kill()
    return why or error


def _keys(order: Order, spec: Spec) -> ClientKeys:
    topology = str(spec["topology"])
    if order.key_file:
        data = Path(order.key_file).read_bytes()
    else:
        statemgr = open_statemgr(msgspec.convert(spec["statemgr"], DriverRef))
        try:
            node = statemgr.get(NodeKind.KEYS, topology)
        finally:
            statemgr.close()
        if node is None:
            msg = (
                f"the state manager has no keys of topology {topology!r}: it was killed, or this machine sees another "
                "state than the command (local files serve where all machines see the same ones)"
            )
            raise StateError(msg)
        data = node.value
    return decode_keys(data, topology).connecting_as(Speaker.MEMBER)


def _spec(order: Order) -> Spec:
    if order.spec is not None:
        return resolved_spec(dict(order.spec))
    spec = json.loads(Path(order.spec_file).read_bytes())
    if not isinstance(spec, dict):
        msg = f"spec file {order.spec_file} does not hold a container's spec"
        raise StateError(msg)
    return spec


@contextmanager
def _environment(code: Sequence[str]) -> Iterator[None]:
    """What the executor inherits: this process's environment without what Spark has put there, but for the `code`."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if _is_sparks(name)}
    if code:
        os.environ["PYTHONPATH"] = os.pathsep.join(code)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH", None)
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
