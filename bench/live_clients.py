"""Clients that follow the live values of a topology, as many open pages do."""

from __future__ import annotations

import re
import selectors
import socket
import threading
from urllib.parse import urlsplit

from bench.records import BenchError
from heron.clock import wall_s

__all__ = ["LiveClients"]

_ANSWERED = re.compile(rb'"started_at_s":([0-9.]+)')
_READ_BYTES = 1 << 20


class LiveClients:
    """Reads all streams in one thread; a context manager."""

    def __init__(self, url: str, number: int) -> None:
        self._url = urlsplit(url)
        self._number = number
        self._delays_s: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="live clients", daemon=True)

    def __enter__(self) -> LiveClients:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10.0)

    def delays_s(self) -> list[float]:
        """Return the seconds from the answer of the topology manager to the client, of each value but the first ones.

        Raises:
            BenchError: when a client has got no value.
        """
        if self._number and len(self._delays_s) < self._number:
            msg = f"{self._number} clients have got {len(self._delays_s)} live values"
            raise BenchError(msg)
        return list(self._delays_s)

    def _read(self) -> None:
        host, port = str(self._url.hostname), int(self._url.port or 80)
        request = f"GET {self._url.path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        waiting = selectors.DefaultSelector()
        clients = [socket.create_connection((host, port)) for _ in range(self._number)]
        values = dict.fromkeys(clients, 0)
        try:
            for each in clients:
                each.sendall(request)
                waiting.register(each, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in waiting.select(0.2):
                    client = key.fileobj
                    assert isinstance(client, socket.socket)
                    found = _ANSWERED.search(client.recv(_READ_BYTES))
                    if found is not None:
                        values[client] += 1
                        if values[client] > 1:  # the first one is as old as it is when the client comes
                            self._delays_s.append(wall_s() - float(found[1]))
        finally:
            waiting.close()
            for each in clients:
                each.close()
