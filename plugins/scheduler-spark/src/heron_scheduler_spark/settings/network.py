"""Addresses on the network: where the driver listens, where workers connect to it, and which hosts are elsewhere."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from heron.errors import SchedulerError, known
from heron_scheduler_spark.settings.master import Master
from heron_scheduler_spark.settings.options import SparkOptions

__all__ = ["DriverAddress", "address_towards", "check_network", "driver_address", "is_here", "is_loopback", "listens"]


@dataclass(frozen=True, slots=True)
class DriverAddress:
    """Workers connect to `host`. The driver listens at `bind`, which differs where addresses are translated."""

    host: str
    bind: str


def driver_address(options: SparkOptions, master: Master) -> DriverAddress:
    """Return the address in the profile, else the address from which this machine reaches the master.

    Raises:
        SchedulerError: when the driver cannot listen there or workers cannot connect; names the option.
    """
    host = options.driver_host or address_towards(master)
    bind = options.driver_bind or host
    if not is_here(bind):
        name = "driver_bind" if options.driver_bind else "driver_host"
        remedy = (
            "set it to one, or to 0.0.0.0"
            if options.driver_bind
            else "set it to one, or set scheduler.driver_bind to one too"
        )
        msg = f"scheduler.{name}: {bind!r} is not an address of this machine; {remedy}"
        raise SchedulerError(msg)
    if _has_workers_elsewhere(master) and is_loopback(host):
        msg = (
            f"scheduler.driver_host: workers of {master.url} do not reach this machine at {host}; set it to an address "
            "of this machine that they reach"
        )
        raise SchedulerError(msg)
    return DriverAddress(host, bind)


def check_network(listening: str, workers: Sequence[str]) -> None:
    """Check that containers on these hosts can reach each other at the address where they listen.

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
    """Return whether a name or an address means only this machine here."""
    with suppress(OSError, ValueError):
        found = {place[0] for *_, place in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)}
        return all(ipaddress.ip_address(each).is_loopback for each in found)
    return False


def is_here(host: str) -> bool:
    """Return whether a name or an address belongs to this machine."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.bind(place)
    except OSError:
        return False
    return True


def listens(address: tuple[str, int], timeout_s: float) -> bool:
    """Return whether the address accepts connections."""
    try:
        socket.create_connection(address, timeout_s).close()
    except OSError:
        return False
    return True


def address_towards(master: Master) -> str:
    """Return the address of this machine on the route to a master; the loopback if the master has no address."""
    for host, port in master.addresses:
        try:
            family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as trial:
                trial.connect(place)  # sends nothing, but finds the route
                return str(trial.getsockname()[0])
        except OSError:
            continue
    return "127.0.0.1"


def _has_workers_elsewhere(master: Master) -> bool:
    """Return whether workers have another loopback: each pod has one, and so has each machine of a remote master."""
    if master.pods:
        return True
    return any(not is_loopback(host) for host, _ in master.addresses)


def _is_local(listening: str) -> bool:
    """Accept an interface or an address. Other names are not looked up: they may be interfaces of the workers."""
    with suppress(ValueError):
        return ipaddress.ip_address(listening).is_loopback
    return listening in {"", "lo", "localhost"}
