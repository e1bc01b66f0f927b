"""The server of HTTP: clients that do not read, and too many of them."""

from __future__ import annotations

import asyncio
import errno
import select
import signal
import socket
from contextlib import suppress

import pytest
from starlette.types import Receive, Scope, Send

from heron_service_tracker import service
from heron_service_tracker.http import bounded_protocol
from heron_service_tracker.http.address import Address

DEADLINE_S = 20.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_client_that_takes_nothing_of_an_answer_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel does it, for every answer: a server that closes a connection waits for the client without limit."""
    monkeypatch.setattr(service, "_UNREAD_S", 0.2)
    with service._listening(Address("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            connection.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    connection.send(b"x" * 65536)
            watched = select.poll()
            watched.register(connection, select.POLLERR)
            assert watched.poll(1000 * DEADLINE_S)
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ETIMEDOUT


def test_connections_above_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a buffer and a file descriptor; the client learns that it may ask later."""
    monkeypatch.setattr(service, "_MOST_CONNECTIONS", 3)
    monkeypatch.setattr(bounded_protocol, "_SHARE", 1)  # all come from one address
    monkeypatch.setattr(service, "_TICK_S", 2 * DEADLINE_S)  # a signal ends the server, and not the end of a second
    seconds: list[int] = []
    ended = asyncio.Event()

    async def busy(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await ended.wait()

    async def run() -> list[bytes]:
        server = service._Server(service._config(busy), ended, lambda: seconds.append(1))
        with service._listening(Address("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()
            found = []
            clients = []
            async with asyncio.timeout(DEADLINE_S):
                for _ in range(3):
                    reader, writer = await asyncio.open_connection(host, port)
                    clients.append(writer)
                    writer.write(REQUEST)
                    found.append(await reader.readline())
                for each in clients:
                    each.close()
                server.handle_exit(signal.SIGTERM, None)
                await serving
        return found

    answers = asyncio.run(run())
    assert [each.split()[1] for each in answers] == [b"200", b"200", b"503"]
    assert len(seconds) == 1
