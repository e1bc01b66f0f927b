"""Tries a Spark out with an application of one task: ``python -m heron_scheduler_spark.probe SCRATCH``.

It writes one JSON line: ``answer``, or ``error``. A process of its own, since it brings a JVM.
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
from heron_scheduler_spark.container_request import container_request
from heron_scheduler_spark.driver_address import driver_address
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.resource_manager import enter_hadoop, find_master
from heron_scheduler_spark.spark_settings import master_url, spark_settings
from heron_scheduler_spark.travelling_spec import travelling_driver
from heron_scheduler_spark.worker_report import Question

__all__ = ["probe"]

_FILE = "trial.json"


class _Trial(msgspec.Struct, frozen=True):
    """What the process is told: `others` are drivers as they may travel."""

    options: SparkOptions
    others: tuple[dict[str, object], ...]


def probe(options: SparkOptions, others: Sequence[DriverRef], timeout_s: float) -> str:
    """What a worker said of itself, and of its use of the drivers `others`.

    Raises:
        SchedulerError: when no task ran within `timeout_s`, something is missing there, or a secret of a driver would
            have to travel; says why.
    """
    travelling = tuple(travelling_driver(json.loads(msgspec.json.encode(each))) for each in others)
    with tempfile.TemporaryDirectory(prefix="heron-probe-", ignore_cleanup_errors=True) as scratch:
        write_private(Path(scratch, _FILE), msgspec.json.encode(_Trial(options, travelling)))  # `conf` may have secrets
        command = [sys.executable, "-P", "-m", "heron_scheduler_spark.probe", scratch]
        said_file = Path(scratch, "said")
        with said_file.open("wb") as stdout:
            process = spawn(command, stdout=stdout, death_signal=signal.SIGTERM)
        try:
            in_time = wait_unreaped(process.pid, timeout_s)
        finally:
            kill_group(process.pid)  # with its JVM
            process.wait()
        said = said_file.read_bytes()
    if not in_time:
        msg = f"Spark at {options.master} has run no task within {timeout_s:.0f} s; has it room for an executor?"
        raise SchedulerError(msg)
    lines = [line for line in said.splitlines() if line.startswith(b'{"')]
    answer: dict[str, str] = json.loads(lines[-1]) if lines else {"error": said.decode("utf-8", "replace")[-300:]}
    if "error" in answer:
        raise SchedulerError(" ".join(answer["error"].split()))
    return answer["answer"]


def _ask(trial: _Trial, scratch: Path) -> str:
    from heron_scheduler_spark.application import Application  # noqa: PLC0415 - pyspark costs half a second

    options = trial.options
    enter_hadoop(options)
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
        said = {"answer": _ask(msgspec.json.decode((scratch / _FILE).read_bytes(), type=_Trial), scratch)}
    except HeronError as error:
        said = {"error": str(error)}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    _main()
