"""``heron-spark-driver``, the process that holds a job's Spark application: ``JOBFILE START SUPERVISOR_FD``.

It is a child of the job's supervisor. The supervisor sends requests to start and end containers, and the driver reports
the results. When the supervisor is gone the driver stops Spark and ends, and so do all containers. `START` is
`FIRST_START` while a command waits for the job: the driver then also checks whether the job can ever run.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from heron.driver_kit.links import ClientKind, GuardedHub, Reactor, SocketContext, Wakeup, open_guarded_hub
from heron.driver_kit.log import configure
from heron.driver_kit.parent_process import bind_to_parent
from heron.driver_kit.scheduler_job import publish_job
from heron.errors import HeronError
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark.application.application import Application
from heron_scheduler_spark.application.cluster_check import check_cluster
from heron_scheduler_spark.application.order_server import OrderServer, OrderServerSettings
from heron_scheduler_spark.application.orders import Orders
from heron_scheduler_spark.application.spark_jobs import JvmThread
from heron_scheduler_spark.driver_process import FIRST_START
from heron_scheduler_spark.messages.message_stream import MessageStream
from heron_scheduler_spark.messages.task_messages import FRAME_BYTES
from heron_scheduler_spark.settings.master import export_hadoop_conf, find_master
from heron_scheduler_spark.settings.network import driver_address
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.spark_settings import executor_requests, master_url, spark_settings

__all__ = ["main"]

BeginApplication = Callable[[str, str, Mapping[str, str], Path, Callable[[], None]], Application]

_ARGUMENTS = 4


def main(begin: BeginApplication = Application) -> int:
    """Run until the supervisor is gone. Return the exit code."""
    bind_to_parent()
    if len(sys.argv) != _ARGUMENTS:
        sys.stderr.write(
            "heron spark-driver: error: the scheduler `spark` starts this program; run: heron submit spark FILE\n"
        )
        return 2
    job_file, start, descriptor = sys.argv[1:]
    supervisor = MessageStream(socket.socket(fileno=int(descriptor)))
    os.set_inheritable(int(descriptor), False)
    folder = JobFolder(Path(job_file).parent)
    record = folder.read_job()
    if record is None:
        sys.stderr.write(f"heron spark-driver: error: {job_file} cannot be read\n")
        return 1
    logging.getLogger("py4j").setLevel(logging.WARNING)
    configure(Path(record.log_dir, "spark-driver.log"), topology=record.topology, process="spark-driver")
    try:
        return _serve(folder, record, supervisor, begin, first=start == FIRST_START)
    except (HeronError, OSError, ValueError) as error:
        supervisor.send({"is": "failed", "error": str(error)})
        sys.stderr.write(f"heron spark-driver: error: {error}\n")
        return 1


def _serve(
    folder: JobFolder, record: JobRecord, supervisor: MessageStream, begin: BeginApplication, *, first: bool
) -> int:
    options = msgspec.convert(record.options, SparkOptions)
    export_hadoop_conf(options)
    master = find_master(options)
    orders = Orders(folder, record, options, master)
    address = driver_address(options, master)
    sockets = SocketContext(max_frame_bytes=FRAME_BYTES, link_timeout_s=options.silence_s)
    hub = open_guarded_hub(sockets, address.bind, orders.keys.listening_to(ClientKind.MEMBER), address.host)
    woken = Wakeup()
    requests = orders.requests()
    url = master_url(master, len(requests))
    settings = spark_settings(options, master, record.topology, address, requests)
    application = begin(url, options.python or sys.executable, settings, _scratch(folder), woken.wake)
    if first:  # later a machine may be missing: containers without a place wait, and the rest runs
        listening = str(orders.first_spec().settings.get("heron.network.host", ""))
        check_cluster(application, master, executor_requests(options, requests), listening)
    server_settings = OrderServerSettings(Path(record.log_dir), options.silence_s, with_sizes=not master.here)
    server = OrderServer(supervisor, application, JvmThread(woken.wake), hub, orders, server_settings)
    handle = f"Spark application {application.id}"
    links = {"Spark UI": application.page} if application.page else {}
    publish_job(orders.first_spec(), handle, links)  # may take long; heartbeats are expected only after `ready`
    supervisor.send({"is": "ready", "handle": handle, "links": links})
    _run(server, supervisor, hub, woken)
    application.stop()
    sockets.close()
    return 0


def _scratch(folder: JobFolder) -> Path:
    scratch = folder.path / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # files of a previous driver that was killed
    scratch.mkdir(mode=0o700)
    return scratch


def _run(server: OrderServer, supervisor: MessageStream, hub: GuardedHub, woken: Wakeup) -> None:
    """Call the order server on each event until it returns False. No call of the loop waits for Spark's JVM."""
    reactor = Reactor()

    def process() -> None:
        woken.drain()
        woken.asleep = True  # set before processing: later events cause another round
        if not server.process():
            reactor.stop()

    reactor.guard(hub)
    reactor.on_readable(supervisor.fileno(), process)
    reactor.on_readable(hub, process)
    reactor.on_readable(woken.fd, process)
    reactor.every(1.0, lambda: None if server.check_due() else reactor.stop())
    process()
    reactor.run()


if __name__ == "__main__":
    sys.exit(main())
