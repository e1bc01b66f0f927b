"""A collector for tests, with a thread in the place of its task, and the bytes of clients."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

from heron_connector_scribe import ServiceOptions
from heron_connector_scribe.batch import Batch
from heron_connector_scribe.entries import Entry
from heron_connector_scribe.log_server import LogServer
from heron_metricsink_scribe.client import Answer
from heron_testing.ports import free_port
from heron_testing.waiting import wait_until

__all__ = ["Collector", "asked_counter", "call", "ended", "reply"]

_STARTS_S = 30.0
_REPLY_BYTES = 24


class Collector:
    """A server, and a thread that takes batches and answers them while it is not paused."""

    def __init__(self, folder: Path, mode: str, **options: object) -> None:
        plain = {"ports": [free_port()], "announce": str(folder / "collectors"), **options}
        self.server = LogServer(ServiceOptions.of(plain), 0, "lines", mode)
        self.entries: list[Entry] = []
        self.batches: list[Batch] = []
        self.paused = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._take)
        self.server.start()
        self._thread.start()
        wait_until(lambda: self.server.port, _STARTS_S, "it listens")
        self.address = ("127.0.0.1", self.server.port)

    def _take(self) -> None:
        while not self._ends.wait(0.001):
            while not self.paused.is_set() and (batch := self.server.intake.take()) is not None:
                self.batches.append(batch)
                self.entries += batch.entries
                self.server.intake.answer(batch)

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self.server.close()

    def refused(self, kind: str) -> int:
        return self.server.counts[f"refused.{kind}"]

    def connect(self) -> socket.socket:
        found = socket.create_connection(self.address)
        found.settimeout(30.0)
        return found


def call(*messages: bytes, seqid: int = 1, category: bytes = b"web") -> bytes:
    """A framed call of ``Log`` in the old form."""
    entries = b"".join(
        struct.pack(">bhi", 11, 1, len(category)) + category + struct.pack(">bhi", 11, 2, len(each)) + each + b"\0"
        for each in messages
    )
    body = struct.pack(">i", 3) + b"Log\x01" + struct.pack(">i", seqid)
    body += struct.pack(">bhbi", 15, 1, 12, len(messages)) + entries + b"\0"
    return struct.pack(">i", len(body)) + body


def asked_counter(arguments: bytes) -> bytes:
    """A framed call of ``getCounter``."""
    body = struct.pack(">i", 10) + b"getCounter\x01" + struct.pack(">i", 1) + arguments
    return struct.pack(">i", len(body)) + body


def reply(client: socket.socket) -> tuple[int, Answer]:
    """The next answer: its number, and what it is."""
    data = b""
    while len(data) < _REPLY_BYTES:
        part = client.recv(_REPLY_BYTES - len(data))
        assert part, "the connection ended"
        data += part
    return struct.unpack_from(">i", data, 12)[0], Answer(struct.unpack_from(">i", data, 19)[0])


def ended(client: socket.socket) -> bool:
    """Whether the server closes the connection, without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True
