"""``heron-spark-driver``, the process that holds a job's Spark application: ``JOBFILE LIFE SUPERVISOR_FD``.

It is a child of the job's supervisor, which tells it what to start and to end, and whom it tells what became of it.
When the supervisor is gone it stops Spark and ends, and so do all containers. `LIFE` is `FIRST_LIFE` while a command
waits for it, which it may tell that the job will never run.
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

from heron.driver_kit.links import GuardedHub, Reactor, SocketContext, Speaker, Wakeup, open_guarded_hub
from heron.driver_kit.log import configure
from heron.driver_kit.parent_process import bind_to_parent
from heron.driver_kit.scheduler_job import publish_job
from heron.errors import HeronError
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark.application import Application
from heron_scheduler_spark.cluster_check import check_cluster
from heron_scheduler_spark.desk import Desk, DeskSettings
from heron_scheduler_spark.driver_address import driver_address
from heron_scheduler_spark.driver_process import FIRST_LIFE
from heron_scheduler_spark.jvm_thread import JvmThread
from heron_scheduler_spark.message_stream import MessageStream
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.orders import Orders
from heron_scheduler_spark.resource_manager import enter_hadoop, find_master
from heron_scheduler_spark.spark_settings import executors_asked_for, master_url, spark_settings

__all__ = ["main"]

BeginApplication = Callable[[str, str, Mapping[str, str], Path, Callable[[], None]], Application]

_ARGUMENTS = 4
_FRAME_BYTES = 1 << 20  # a piece of a log has 64 KiB; what is larger comes from somebody who has no key


def main(begin: BeginApplication = Application) -> int:
    """Runs until the supervisor hangs up. Gives the exit code."""
    bind_to_parent()
    if len(sys.argv) != _ARGUMENTS:
        sys.stderr.write("heron spark-driver: error: it is started by the scheduler `spark`: heron submit spark FILE\n")
        return 2
    job_file, life, descriptor = sys.argv[1:]
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
        return _serve(folder, record, supervisor, begin, first=life == FIRST_LIFE)
    except (HeronError, OSError, ValueError) as error:
        supervisor.send({"is": "failed", "error": str(error)})
        sys.stderr.write(f"heron spark-driver: error: {error}\n")
        return 1


def _serve(
    folder: JobFolder, record: JobRecord, supervisor: MessageStream, begin: BeginApplication, *, first: bool
) -> int:
    options = msgspec.convert(record.options, SparkOptions)
    enter_hadoop(options)
    master = find_master(options)
    orders = Orders(folder, record, options, master)
    address = driver_address(options, master)
    sockets = SocketContext(max_frame_bytes=_FRAME_BYTES, link_timeout_s=options.silence_s)
    hub = open_guarded_hub(sockets, address.bind, orders.keys.listening_to(Speaker.MEMBER), address.host)
    woken = Wakeup()
    requests = orders.requests()
    url = master_url(master, len(requests))
    settings = spark_settings(options, master, record.topology, address, requests)
    application = begin(url, options.python or sys.executable, settings, _scratch(folder), woken.wake)
    if first:  # later a machine may be missing: what finds no place waits, and the rest runs
        listening = str(orders.first_spec().settings.get("heron.network.host", ""))
        check_cluster(application, master, executors_asked_for(options, requests), listening)
    desk_settings = DeskSettings(Path(record.log_dir), options.silence_s, with_sizes=not master.here)
    desk = Desk(supervisor, application, JvmThread(woken.wake), hub, orders, desk_settings)
    handle = f"Spark application {application.id}"
    links = {"Spark UI": application.page} if application.page else {}
    publish_job(orders.first_spec(), handle, links)  # may take long; from ready on it says it is alive
    supervisor.send({"is": "ready", "handle": handle, "links": links})
    _run(desk, supervisor, hub, woken)
    application.stop()
    sockets.close()
    return 0


def _scratch(folder: JobFolder) -> Path:
    scratch = folder.path / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # a driver before this one may have been killed
    scratch.mkdir(mode=0o700)
    return scratch


def _run(desk: Desk, supervisor: MessageStream, hub: GuardedHub, woken: Wakeup) -> None:
    """Has the desk look whenever there is something, until it is to end. No call of the loop asks Spark's JVM."""
    reactor = Reactor()

    def look() -> None:
        woken.drain()
        woken.asleep = True  # before it looks: what comes meanwhile is looked at in the next round
        if not desk.look():
            reactor.stop()

    reactor.guard(hub)
    reactor.on_readable(supervisor.fileno(), look)
    reactor.on_readable(hub, look)
    reactor.on_readable(woken.fd, look)
    reactor.every(1.0, lambda: None if desk.tick() else reactor.stop())
    look()
    reactor.run()


if __name__ == "__main__":
    sys.exit(main())
