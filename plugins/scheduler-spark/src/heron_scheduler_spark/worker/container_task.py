"""The task in a Python worker of Spark: it starts the executor of one container and watches it.

When the task ends, its container ends. The kernel signals the executor when this process dies. The task itself watches
the JVM above it, the daemon between them, and the driver. When the container ends, the task ends too. The task always
succeeds in Spark, with the reason as its result, because the supervisor decides what follows.
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
from heron.driver_kit.links import ClientKeys, ClientKind, decode_keys
from heron.driver_kit.private_files import write_private
from heron.errors import HeronError, StateError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.executor_record import ExecutorRecord, remove_stale_run_dirs
from heron_scheduler_kit.run_dir import own_run_dir
from heron_scheduler_spark.messages.task_messages import (
    ContainerEnded,
    DriverCommand,
    ExecutorStarted,
    Order,
    StartFailed,
)
from heron_scheduler_spark.settings.redacted_spec import resolve_spec
from heron_scheduler_spark.settings.shipped_code import shipped_code
from heron_scheduler_spark.worker.container_logs import ContainerLogs
from heron_scheduler_spark.worker.task_link import TaskLink
from heron_scheduler_spark.worker.worker_report import check_core

__all__ = ["run_container"]

Spec = dict[str, object]

_LOOK_S = 0.1
_SPARK_PREFIXES = ("SPARK_", "_SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHON_WORKER_", "PYTHON_DAEMON_", "PYTHON_UDF_")
_SPARK_NAMES = frozenset({"PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONPATH"})


def run_container(orders: Iterable[str]) -> Iterator[str]:
    """Run the container of an order; Spark calls it. Yield the reason of the end, "" after a clean end."""
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
        if link.register(order.ticket) is not DriverCommand.GO:
            return "it came too late"
        reason = _run_executor(order, spec, link)
    except HeronError as error:
        return str(error)
    finally:
        link.close()
    return reason


def _run_executor(order: Order, spec: Spec, link: TaskLink) -> str:
    run_dir = Path(str(spec["run_dir"]))
    record = ExecutorRecord(run_dir, order.container_id)
    logs: ContainerLogs | None = None
    try:
        own_run_dir(run_dir)
        record.kill_previous()
        if order.spec is not None:
            remove_stale_run_dirs(run_dir)
        spec_file, logs = (Path(order.spec_file), None) if order.spec is None else _write_spec(order, spec, link)
        executor = _execute(order, spec_file, spec, record)
    except (HeronError, OSError, ValueError) as error:
        if order.spec is not None:
            if logs is not None:
                logs.close()
            with suppress(OSError):  # no executor has read it
                _spec_file(run_dir, order).unlink(missing_ok=True)
            record.remove_run_dir()
        reason = f"container {order.container_id} cannot be started on {os.uname().nodename}: {error}"
        if isinstance(error, OSError) and Path(str(error.filename or run_dir)).is_relative_to(run_dir.parent):
            reason += f"; run.run_dir, {run_dir.parent}, needs room there, and must be writable"
        link.send(StartFailed(reason))
        link.send(ContainerEnded(reason))
        return reason
    link.send(ExecutorStarted(executor.identity.pid, executor.identity.start))
    reason = _watch(order, link, executor, logs)
    if logs is not None:
        logs.close()
        spec_file.unlink(missing_ok=True)
    record.remove()
    link.send(ContainerEnded(reason, executor.at_fault))
    return reason


def _execute(order: Order, spec_file: Path, spec: Spec, record: ExecutorRecord) -> ExecutorProcess:
    """Start the executor and record it; after an error neither is done."""
    with _environment(shipped_code(order.py_files, sys.path)):
        command = order.command or (sys.executable, "-P", "-m", "heron.executor.main")
        executor = ExecutorProcess(command, spec_file, spec)
    try:
        record.write(executor.identity)
    except OSError:
        executor.kill_now()
        raise
    return executor


def _write_spec(order: Order, spec: Spec, link: TaskLink) -> tuple[Path, ContainerLogs]:
    """Write the spec where the executor reads it, with a log folder for this container alone."""
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
    parents = _parents()
    why, kill_at_s = "", float("inf")
    while (error := executor.ended()) is None:
        if logs is not None:
            logs.ship()
        commands = link.receive(_LOOK_S)
        gone = link.lost and f"the Spark driver is gone: {link.lost}"
        gone = gone or ("" if _alive(parents) else "the JVM of its Spark executor has ended")
        if (gone or DriverCommand.TERMINATE in commands) and kill_at_s == float("inf"):
            why = gone
            executor.terminate()
            kill_at_s = monotonic_s() + order.grace_s
        if DriverCommand.KILL in commands or monotonic_s() > kill_at_s:
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
                "state than the command (local files work only if all machines see the same files)"
            )
            raise StateError(msg)
        data = node.value
    return decode_keys(data, topology).connecting_as(ClientKind.MEMBER)


def _spec(order: Order) -> Spec:
    if order.spec is not None:
        return resolve_spec(dict(order.spec))
    spec = json.loads(Path(order.spec_file).read_bytes())
    if not isinstance(spec, dict):
        msg = f"spec file {order.spec_file} does not hold a container's spec"
        raise StateError(msg)
    return spec


@contextmanager
def _environment(code: Sequence[str]) -> Iterator[None]:
    """Remove the variables of Spark from the environment that the executor inherits, and add the paths in `code`."""
    removed = {name: os.environ.pop(name) for name in list(os.environ) if _is_of_spark(name)}
    if code:
        os.environ["PYTHONPATH"] = os.pathsep.join(code)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH", None)
        os.environ.update(removed)


def _is_of_spark(name: str) -> bool:
    return name in _SPARK_NAMES or name.startswith(_SPARK_PREFIXES)


def _parents() -> tuple[int, ProcessIdentity]:
    """Return the pid of the daemon that forked this process, and the JVM that started the daemon."""
    daemon = os.getppid()
    jvm = 0
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{daemon}/stat").read_bytes().rpartition(b")")[2].split()
        jvm = int(fields[1])
    return daemon, ProcessIdentity.of(jvm)


def _alive(parents: tuple[int, ProcessIdentity]) -> bool:
    daemon, jvm = parents
    return os.getppid() == daemon and (jvm.pid <= 1 or jvm.alive())
