"""Who reaches whom: asked before a JVM is started, which would only time out."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress

from heron.errors import SchedulerError, known
from heron_scheduler_spark.master import Cluster, Master

__all__ = ["address_towards", "check_master", "check_network", "is_here", "is_loopback", "listens"]


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


def check_network(listening: str, workers: Sequence[str]) -> None:
    """Whether containers on these hosts could reach each other where they are told to listen.

    Raises:
        SchedulerError: when that is the loopback address, and one of the hosts is elsewhere.
    """
    if _is_local(listening) and (others := [each for each in workers if not is_loopback(each)]):
        msg = (
            f"heron.network.host: containers would listen at {listening}, which other machines do not reach, and the "
            f"cluster has {known(others)}; set it to the network interface that the workers have in common"
        )
        raise SchedulerError(msg)


def is_loopback(host: str) -> bool:
    """Whether all that a name or an address stands for here is this machine alone."""
    with suppress(OSError, ValueError):
        found = {place[0] for *_, place in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)}
        return all(ipaddress.ip_address(each).is_loopback for each in found)
    return False


def is_here(host: str) -> bool:
    """Whether a name or an address is this machine's."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True


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


def _is_local(listening: str) -> bool:
    """Of an interface or an address; another name is not looked up, as it may be one of the workers' interfaces."""
    with suppress(ValueError):
        return ipaddress.ip_address(listening).is_loopback
    return listening in {"", "lo", "localhost"}
