"""Hosts on one machine, each in its own network namespace, with links between them that a test can break.

A pair of interfaces connects every host, and this machine, to a router, which is a namespace too. Packets between two
hosts pass the router, where nftables drops them. Delayed connections pass a relay there (`heron_testing.relay`),
because not every kernel can delay packets.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from heron_testing.relay import Relay
from heron_testing_servers.install import ServerNotInstalledError, system_program
from heron_testing_servers.namespace import Namespace, remove_stale

__all__ = ["FIXTURES", "HERE", "Network"]

FIXTURES = ("network",)

HERE = -1
"""This machine, as a host of the network."""

_PREFIX = "heron"
_FIRST = int(ipaddress.IPv4Address("198.18.0.0"))  # 198.18.0.0/15 is reserved for tests of networks
_BLOCKS, _BLOCK = 2048, 64
_ROUTER, _HERE = 62, 61  # within a block; hosts begin with 1
_SO_ORIGINAL_DST = 80  # linux/netfilter_ipv4.h: the original destination of a redirected connection


class Network:
    """Hosts numbered from 0, and this machine (`HERE`). Without faults every link works.

    A fault holds as long as its context; several may hold at once. For containers of `heron-scheduler-local`, use
    `launcher`, `place` and, as ``heron.network.host``, the name `interface`.
    """

    def __init__(self, hosts: int) -> None:
        """Make the namespaces; `kill` removes them. Namespaces of ended processes are removed first.

        Raises:
            ServerNotInstalledError: without root, or when the kernel or its tools do not support it.
        """
        if os.geteuid() != 0:
            msg = "network namespaces and nftables are for root: run the tests as root"
            raise ServerNotInstalledError(msg)
        self._nft = system_program("nft", "nftables")
        self._nsenter = system_program("nsenter", "util-linux")
        self._numbers = itertools.count()
        self._faults: dict[int, str] = {}
        self._detours: dict[int, str] = {}
        self._count = hosts
        self.interface = f"hn{os.getpid()}"
        """The interface of the network: the same name on every host and on this machine."""

    def start(self) -> None:
        """Make the hosts and their links."""
        remove_stale(_PREFIX)
        self._base = _free_block()
        self._router = Namespace.make(f"{_PREFIX}-{os.getpid()}-router")
        self._router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self._hosts = [Namespace.make(f"{_PREFIX}-{os.getpid()}-{each}") for each in range(self._count)]
        self._join(Namespace(""), HERE)
        for number, host in enumerate(self._hosts):
            self._join(host, number)

    def kill(self) -> None:
        """End the processes in the hosts and remove everything."""
        for each in (*self._hosts, self._router):
            each.remove()

    def address(self, host: int) -> str:
        """Return the address of a host."""
        return self._at(_HERE if host == HERE else 1 + host)

    def launcher(self, folder: Path) -> list[str]:
        """Return the option ``launcher`` of the local scheduler that starts each container on its host from `place`."""
        return [self._nsenter, f"--net={folder}/{{container}}", "--"]

    def enter(self, host: int) -> list[str]:
        """Return the prefix of a command that is to run on a host; the prefix execs the command."""
        return [self._nsenter, f"--net={self._hosts[host].path}", "--"]

    def place(self, folder: Path, container_id: int, host: int) -> None:
        """Let a container run on that host from its next start; `folder` belongs to the test."""
        link = folder / str(container_id)
        link.unlink(missing_ok=True)
        link.symlink_to(self._hosts[host].path)

    def host_of(self, pid: int) -> int:
        """Return the host that a process runs on; `HERE` if it is not in the network."""
        own = Path(f"/proc/{pid}/ns/net")
        return next((number for number, host in enumerate(self._hosts) if own.samefile(host.path)), HERE)

    @contextlib.contextmanager
    def cut(self, one: int, other: int) -> Iterator[None]:
        """Drop all packets between two hosts."""
        with self.one_way(one, other), self.one_way(other, one):
            yield

    @contextlib.contextmanager
    def one_way(self, sender: int, receiver: int) -> Iterator[None]:
        """Drop all packets from the sender to the receiver, but not in the other direction."""
        with self._rule(self._faults, f"{self._between(sender, receiver)} drop"):
            yield

    @contextlib.contextmanager
    def lossy(self, one: int, other: int, percent: int) -> Iterator[None]:
        """Drop this percentage of the packets between two hosts, at random."""
        with contextlib.ExitStack() as stack:
            for a, b in ((one, other), (other, one)):
                rule = f"{self._between(a, b)} numgen random mod 100 < {percent} drop"
                stack.enter_context(self._rule(self._faults, rule))
            yield

    @contextlib.contextmanager
    def slow(self, one: int, other: int, delay_s: float) -> Iterator[Relay]:
        """Delay both directions of TCP connections between two hosts that are made meanwhile. At the end these
        connections break. The relay that they pass can change the delay.
        """
        with self._router.entered():
            listener = socket.create_server((self._at(_ROUTER), 0))
        relay = Relay(self._through, listener=listener, delay_s=delay_s)
        port = listener.getsockname()[1]
        try:
            with contextlib.ExitStack() as stack:
                for a, b in ((one, other), (other, one)):
                    rule = f"{self._between(a, b)} meta l4proto tcp redirect to :{port}"
                    stack.enter_context(self._rule(self._detours, rule))
                yield relay
        finally:
            relay.close()

    def _through(self, client: socket.socket) -> socket.socket:
        """Forward a redirected connection to its original destination."""
        wanted = client.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
        port, address = struct.unpack_from("!2xH4s", wanted)
        with self._router.entered():
            return socket.create_connection((socket.inet_ntoa(address), port))

    @contextlib.contextmanager
    def _rule(self, rules: dict[int, str], rule: str) -> Iterator[None]:
        number = next(self._numbers)
        rules[number] = rule
        self._set_rules()
        try:
            yield
        finally:
            del rules[number]
            self._set_rules()

    def _set_rules(self) -> None:
        """Replace all rules at once."""
        faults = "\n".join(self._faults.values())
        detours = "\n".join(self._detours.values())
        table = (
            "table ip heron {\n"
            f"chain faults {{\ntype filter hook forward priority 0; policy accept;\n{faults}\n}}\n"
            f"chain detours {{\ntype nat hook prerouting priority -100; policy accept;\n{detours}\n}}\n}}\n"
        )
        self._router.run(self._nft, "-f", "-", stdin_text=f"table ip heron\ndelete table ip heron\n{table}")

    def _between(self, sender: int, receiver: int) -> str:
        return f"ip saddr {self.address(sender)} ip daddr {self.address(receiver)}"

    def _join(self, host: Namespace, number: int) -> None:
        """Connect a host to the router."""
        outer = f"to{number}"
        ends = (host, self.interface, self.address(number)), (self._router, outer, self._at(_ROUTER))
        host.ip("link", "add", self.interface, "type", "veth", "peer", "name", outer, "netns", self._router.name)
        for namespace, interface, address in ends:
            namespace.ip("addr", "add", f"{address}/32", "dev", interface)
            namespace.ip("link", "set", interface, "up")
        self._router.ip("route", "add", f"{self.address(number)}/32", "dev", outer)
        host.ip("route", "add", f"{self._at(_ROUTER)}/32", "dev", self.interface)
        host.ip("route", "add", _block(self._base), "via", self._at(_ROUTER))

    def _at(self, number: int) -> str:
        return str(ipaddress.IPv4Address(self._base + number))


def _free_block() -> int:
    """Return the first address of an unused block, because other tests may run on this machine."""
    for number in range(_BLOCKS):
        base = _FIRST + (os.getpid() + number) % _BLOCKS * _BLOCK
        if not Namespace("").ip("route", "show", "root", _block(base)).strip():
            return base
    msg = "every block of 198.18.0.0/15 is in use; remove the interfaces hn<number> of tests that are over"
    raise ServerNotInstalledError(msg)


def _block(base: int) -> str:
    return f"{ipaddress.IPv4Address(base)}/26"
