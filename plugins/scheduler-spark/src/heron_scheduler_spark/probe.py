"""Tries Spark with an application of one task: ``python -m heron_scheduler_spark.probe SCRATCH``.

It writes one JSON line: ``answer``, or ``error``. It is a separate process because it starts a JVM.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from heron.driver_kit.child_processes import kill_group, spawn, wait_unreaped
from heron.driver_kit.core_version import core_version
from heron.driver_kit.parent_process import bind_to_parent
from heron.driver_kit.private_files import write_private
from heron.errors import HeronError, SchedulerError
from heron.planner.packing_plan import NO_RESOURCE
from heron.spi.driver import DriverRef
from heron_scheduler_spark.settings.container_request import container_request
from heron_scheduler_spark.settings.master import export_hadoop_conf, find_master
from heron_scheduler_spark.settings.network import driver_address
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.redacted_spec import redact_driver
from heron_scheduler_spark.settings.spark_settings import master_url, spark_settings
from heron_scheduler_spark.worker.worker_report import Question

__all__ = ["probe"]

_FILE = "trial.json"


class _Trial(msgspec.Struct, frozen=True):
    """The input of the process; `others` are drivers without secrets."""

    options: SparkOptions
    others: tuple[dict[str, object], ...]


def probe(options: SparkOptions, others: Sequence[DriverRef], timeout_s: float) -> str:
    """Return a worker's report on itself and on the drivers `others`.

    Raises:
        SchedulerError: when no task ran within `timeout_s`, a check of the worker fails, or a secret of a driver has no
            reference to a file.
    """
    redacted = tuple(redact_driver(json.loads(msgspec.json.encode(each))) for each in others)
    with tempfile.TemporaryDirectory(prefix="heron-probe-", ignore_cleanup_errors=True) as scratch:
        write_private(
            Path(scratch, _FILE), msgspec.json.encode(_Trial(options, redacted))
        )  # with the secrets of `conf`
        command = [sys.executable, "-P", "-m", "heron_scheduler_spark.probe", scratch]
        output_file = Path(scratch, "output")
        with output_file.open("wb") as stdout:
            process = spawn(command, stdout=stdout, death_signal=signal.SIGTERM)
        try:
            in_time = wait_unreaped(process.pid, timeout_s)
        finally:
            kill_group(process.pid)  # with its JVM
            process.wait()
        output = output_file.read_bytes()
    if not in_time:
        msg = (
            f"Spark at {options.master} has run no task within {timeout_s:.0f} s; check that it has room for an "
            "executor"
        )
        raise SchedulerError(msg)
    lines = [line for line in output.splitlines() if line.startswith(b'{"')]
    answer: dict[str, str] = json.loads(lines[-1]) if lines else {"error": output.decode("utf-8", "replace")[-300:]}
    if "error" in answer:
        raise SchedulerError(" ".join(answer["error"].split()))
    return answer["answer"]


def _ask(trial: _Trial, scratch: Path) -> str:
    from heron_scheduler_spark.application.application import Application  # noqa: PLC0415 - pyspark costs half a second

    options = trial.options
    export_hadoop_conf(options)
    master = find_master(options)
    address = driver_address(options, master)
    request = container_request(NO_RESOURCE, options.jvm_heap_mb, heap_only=master.counts_heap_only)
    settings = spark_settings(options, master, "probe", address, [request])
    python = options.python or sys.executable
    family = socket.AF_INET6 if ":" in address.bind else socket.AF_INET
    with socket.create_server((address.bind, 0), family=family) as listening:  # as the driver of a job does
        question = Question(core_version(), (address.host, listening.getsockname()[1]), trial.others)
        application = Application(master_url(master, 1), python, settings, scratch, lambda: None)
        try:
            return application.ask_worker(msgspec.json.encode(question).decode(), request)
        finally:
            application.stop()


def _main() -> None:
    bind_to_parent()
    scratch = Path(sys.argv[1])
    try:
        result = {"answer": _ask(msgspec.json.decode((scratch / _FILE).read_bytes(), type=_Trial), scratch)}
    except HeronError as error:
        result = {"error": str(error)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    _main()
