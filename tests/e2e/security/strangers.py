"""Peers that must get nothing: each speaks to a port of a running topology as a program without its keys could.

A test finds the ports with `listening_ports`, so a port that a later version opens is tried too.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from heron.ipc.keys import ClientKeys, KeyPair
from heron.ipc.socket import SocketContext
from heron.ipc.watched_channel import ConnectionEnd, open_watched_channel
from heron_testing.heron_run import processes_of
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until

__all__ = [
    "GREETING_BYTES",
    "STRANGERS",
    "Port",
    "answer_to",
    "listening_ports",
    "plain_handshake",
    "proving",
    "recorded_handshake",
]

GREETING_BYTES = 64
"""The first bytes of every ZMTP peer: they say its version and mechanism, and nothing about a topology (RFC 23)."""

_ANSWER_S = 1.0  # a server that has nothing to say closes the connection, or stays silent until its handshake times out
_PROOF_S = 20.0


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port on which a process listens. `role` is the module of the process, such as ``heron.stmgr.main``."""

    number: int
    address: str
    pid: int
    role: str


def listening_ports(home: Path) -> list[Port]:
    """Every TCP port on which any process of a sandbox listens."""
    found = set()
    for process in processes_of(home):
        with contextlib.suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            role = words[words.index("-m") + 1] if "-m" in words else " ".join(words[1:3])
            found |= {
                Port(each.laddr.port, each.laddr.ip, process.pid, role)
                for each in process.net_connections(kind="tcp")
                if each.status == psutil.CONN_LISTEN
            }
    return sorted(found, key=lambda each: (each.number, each.pid))


def answer_to(port: int, data: bytes) -> bytes:
    """Everything that a port answers to these bytes, until it closes the connection or is silent for a second."""
    answer = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as stranger:
        with contextlib.suppress(OSError):  # it was closed before it read all
            stranger.sendall(data)
        with contextlib.suppress(OSError):
            while part := stranger.recv(65536):
                answer += part
    return bytes(answer)


def plain_handshake(mechanism: bytes, command: bytes) -> bytes:
    """The greeting of a ZMTP peer with this mechanism, its first command, and a frame that it would send afterwards."""
    greeting = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    return greeting + b"\x04" + bytes([len(command)]) + command + b"\x00\x05hello"


STRANGERS = {
    "scanner": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(64),
    "ones": b"\xff" * 1000,
    "null": plain_handshake(b"NULL", b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"),
    "plain": plain_handshake(b"PLAIN", b"\x05HELLO\x05admin\x05admin"),
    "no-mechanism": plain_handshake(b"", b"\x05READY"),
    "unknown-mechanism": plain_handshake(b"GSSAPI", b"\x08INITIATE"),
    "short-hello": plain_handshake(b"CURVE", b"\x05HELLO\x01\x00"),
}
"""What peers without any key send, by name; none of it may get more than a greeting."""


def recorded_handshake(port: int, keys: ClientKeys, frame: bytes) -> tuple[bytes, bytes]:
    """What a peer with these keys sends to a port with its handshake and one frame, and what the port answers."""
    sent, answered = bytearray(), bytearray()

    def through(_client: socket.socket) -> socket.socket:
        server = _RecordingSocket(fileno=socket.create_connection(("127.0.0.1", port)).detach())
        server.sent, server.answered = sent, answered
        return server

    relay = Relay(through)
    context = SocketContext(max_frame_bytes=-1)
    try:
        channel = context.client_of(f"tcp://127.0.0.1:{relay.address[1]}", keys=keys)
        channel.send(frame)
        wait_until(lambda: b"\x07MESSAGE" in sent, _PROOF_S, "the peer has proved its key and sent a frame")
        channel.close()
    finally:
        context.close()
        relay.close()
    return bytes(sent), bytes(answered)


class _RecordingSocket(socket.socket):
    """Keeps what is sent and what is answered."""

    sent: bytearray
    answered: bytearray

    def sendall(self, data: bytes, *_: int) -> None:  # type: ignore[override]  # a relay sends bytes only
        """Send and keep."""
        self.sent += data
        super().sendall(data)

    def recv(self, *arguments: int) -> bytes:
        """Receive and keep."""
        data = super().recv(*arguments)
        self.answered += data
        return data


@contextlib.contextmanager
def proving(
    port: int, server_public: str, pair: KeyPair, frame: bytes
) -> Iterator[tuple[Callable[[], bool], Callable[[], bytes | None]]]:
    """A peer that proves a key to a server with a known public key, and has sent a frame.

    Yields two functions. The first waits until the server has ended the connection, and returns whether it has. The
    second returns what the server has sent.
    """
    context = SocketContext(max_frame_bytes=-1)
    try:
        channel = open_watched_channel(context, f"tcp://127.0.0.1:{port}", ClientKeys(server_public, pair))
        channel.send(frame)

        def ended() -> bool:
            channel.wait(_PROOF_S)
            return channel.end in {ConnectionEnd.UNKNOWN_KEY, ConnectionEnd.FOREIGN, ConnectionEnd.GONE}

        yield ended, channel.receive
        channel.close()
    finally:
        context.close()
