"""Whether a master is there at all, asked before a JVM is started for it."""

from __future__ import annotations

import socket

from heron.errors import SchedulerError
from heron_scheduler_spark.master import Cluster, Master

__all__ = ["address_towards", "check_master", "listens"]


def check_master(master: Master, timeout_s: float) -> None:
    """Whether one of a master's addresses accepts connections.

    Raises:
        SchedulerError: when none does; says why of each.
    """
    refusals = []
    for address in master.addresses:
        try:
            socket.create_connection(address, timeout_s / len(master.addresses)).close()
        except OSError as error:
            refusals.append(f"{address[0]}:{address[1]}: {error.strerror or error}")
        else:
            return
    if refusals:
        who = "resource manager of YARN" if master.cluster is Cluster.YARN else "Spark master"
        msg = f"no {who} answers at {master.url} ({'; '.join(refusals)}); start it, or set scheduler.master"
        raise SchedulerError(msg)


def listens(address: tuple[str, int], timeout_s: float) -> bool:
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection(address, timeout_s).close()
    except OSError:
        return False
    return True


def address_towards(master: Master) -> str:
    """The address of this machine from which a master is reached; the loopback where it has none."""
    for host, port in master.addresses:
        try:
            family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(place)  # sends nothing: only the route is looked up
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return "127.0.0.1"
