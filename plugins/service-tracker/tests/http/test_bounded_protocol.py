"""What strangers can do to the server of HTTP: slow requests, endless bodies, many connections, torn headers."""

from __future__ import annotations

import asyncio
import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from heron_cli.client import Client
from heron_service_tracker import service
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.http import bounded_protocol
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

T = TypeVar("T")

TOKEN = "a-token-of-the-tests"
ACTIONS = "/api/v1/clusters/near/topologies/words/actions"
DEADLINE_S = 30.0
GIGABYTE = 1_000_000_000
MOST_BYTES = 16_000_000  # in the buffers of two sockets and of the server
LOOPBACK = Access(Address("127.0.0.1", 1))
Talk = Callable[[str, int], Awaitable[T]]


def served(
    observations: Observations,
    talk: Talk[T],
    access: Access = LOOPBACK,
    audit: Path | None = None,
    deadline_s: float = DEADLINE_S,
) -> T:
    """Serve while a client talks to the server; return what it returns."""

    async def run() -> T:
        ended = asyncio.Event()
        actions = Actions(_no_client, AuditFile(audit), FakeClock()) if audit else None
        app = application(observations, access, ended, actions=actions)
        server = service._Server(service._config(app), ended, lambda: None)
        with service._listening(Address("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()
            async with asyncio.timeout(deadline_s):
                result = await talk(host, port)
                server.handle_exit(signal.SIGTERM, None)
                await serving
        return result

    return asyncio.run(run())


def _no_client(_cluster: str) -> Client:
    pytest.fail("a refused request reached a topology")


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Read until the server ends the connection, in whatever way."""
    found = b""
    with suppress(ConnectionError):
        while part := await reader.read(65536):
            found += part
    return found


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HT",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST " + ACTIONS.encode() + b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + TOKEN.encode()
        + b"\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n{",
    ],
    ids=["silent", "line", "headers", "body", "body-after-the-answer"],
)  # fmt: skip
def test_a_request_that_does_not_end_is_given_up(
    observations: Observations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begun: bytes
) -> None:
    """A client that sends a byte now and then would hold a connection for ever, and 750 of them all connections."""
    monkeypatch.setattr(bounded_protocol, "_REQUEST_S", 0.3)

    async def talk(host: str, port: int) -> bool:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(begun)
        ending = asyncio.create_task(everything(reader))
        while not ending.done():
            with suppress(ConnectionError):
                if begun:
                    writer.write(b"x")  # it is not silent
                await writer.drain()
            await asyncio.wait({ending}, timeout=0.05)
        writer.close()
        return True

    access = Access(Address("127.0.0.1", 1), TOKEN)
    assert served(observations, talk, access, tmp_path / "audit.jsonl")


@pytest.mark.parametrize(
    ("request_head", "code"),
    [
        (b"POST " + ACTIONS.encode() + b" HTTP/1.1\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n", b"413"),
        (b"POST " + ACTIONS.encode() + b" HTTP/1.1\r\n", b"401"),
        (b"PUT /health HTTP/1.1\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n", b"405"),
        (b"GET /health HTTP/1.1\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n", b"200"),
    ],
    ids=["action", "without token", "method", "a question"],
)
def test_a_body_of_a_gigabyte_is_not_read(
    observations: Observations, tmp_path: Path, request_head: bytes, code: bytes
) -> None:
    """The answer comes before the end of the body, and then the connection ends: no memory, no transfer."""

    async def talk(host: str, port: int) -> tuple[bytes, int]:
        reader, writer = await asyncio.open_connection(host, port)
        kind = b"Host: localhost\r\nContent-Type: application/json\r\n"
        writer.write(request_head + kind + b"Content-Length: %d\r\n\r\n" % GIGABYTE)
        sent, part = 0, b"x" * 65536
        answer = asyncio.create_task(everything(reader))
        with suppress(ConnectionError):
            while sent < GIGABYTE and not writer.is_closing():
                writer.write(part)
                await writer.drain()
                sent += len(part)
        writer.close()
        return await answer, sent

    access = Access(Address("127.0.0.1", 1), TOKEN)
    tracemalloc.start()
    try:
        answer, sent = served(observations, talk, access, tmp_path / "audit.jsonl")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.split(b" ")[1] == code
    assert sent < MOST_BYTES
    assert peak < MOST_BYTES


@pytest.mark.parametrize(("most", "strangers"), [(20, 300), pytest.param(None, 10_000, marks=pytest.mark.soak)])
def test_open_connections_are_bounded_and_friends_are_answered_again(
    observations: Observations, monkeypatch: pytest.MonkeyPatch, most: int | None, strangers: int
) -> None:
    """Each is a file descriptor, and the watches of topologies need some of the process's thousand.

    The strangers stay silent, and their connections end after the time for a request.
    """
    if most is not None:
        monkeypatch.setattr(service, "_MOST_CONNECTIONS", most)
        monkeypatch.setattr(bounded_protocol, "_REQUEST_S", 1.0)
    limit = service._MOST_CONNECTIONS + bounded_protocol._SPARE_CONNECTIONS

    async def talk(host: str, port: int) -> tuple[int, int]:
        held: list[asyncio.Task[None]] = []
        largest = 0
        before = _descriptors()

        async def stranger() -> None:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, port)
                await everything(reader)
                writer.close()

        for _ in range(0, strangers, 50):
            held += [asyncio.create_task(stranger()) for _ in range(50)]
            await asyncio.sleep(0)
            async with asyncio.timeout(2 * DEADLINE_S):
                while sum(not each.done() for each in held) > limit + 40:
                    await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED, timeout=1.0)
                    held = [each for each in held if not each.done()]
            largest = max(largest, (_descriptors() - before) // 2)  # each connection has an end in this process, too
        await asyncio.gather(*held)
        async with httpx.AsyncClient() as friend:
            answer = await friend.get(f"http://{host}:{port}/health")
        return largest, answer.status_code

    largest, code = served(observations, talk, deadline_s=DEADLINE_S + strangers / 40)
    assert code == 200
    assert 0 < largest <= limit + 90  # two rounds of fifty that were accepted or are about to be closed


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/clusters/near/topologies/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/clusters/..%2F..%2Fetc/topologies/passwd",
        "/api/v1/clusters/near/topologies/words/tasks/..%2f..%2fx/logs",
        "/api/v1/clusters/near/topologies/%00",
        "/api/v1/clusters/near/topologies/words%0d%0aSet-Cookie:%20a=b",
        "/api/v1/topologies?cluster=%0d%0aSet-Cookie:%20a=b",
        "/api/v1/topologies?%0d%0aSet-Cookie:%20a=b",
        "/%0d%0aSet-Cookie:%20a=b",
        "//evil.example/..",
        "/api/v1/clusters/near/topologies/%1b%5b31m%c2%9b%e2%80%ae",
    ],
)
def test_names_reach_no_file_and_no_header(observations: Observations, target: str) -> None:
    """A name is looked up among the topologies that are known, and an error quotes it in its body alone."""

    async def talk(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await everything(reader)
        writer.close()
        return answer

    head, _, body = served(observations, talk).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] in {b"400", b"404"}
    assert b"set-cookie" not in head.lower()
    assert b"root:" not in body
    assert not {0x1B, 0x0D, 0x0A, 0x9B, 0x00} & set(body.decode().encode("utf-32-le")[::4])


@pytest.mark.parametrize(
    "lines",
    [
        b"Host: localhost\r\nHost: evil.example",
        b"Host: localhost\r\n X: folded",
        b"Host : localhost",
        b"Host: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        b"Host: localhost\r\nContent-Length: 3\r\nContent-Length: 4",
        b"Host: localhost\r\nX: " + b"a" * 300_000,
        b"Host: evil.example\r\nX-Forwarded-Host: localhost",
        b"Host: localhost\r\nOrigin: http://evil.example",
        b"Host: localhost\r\nOrigin: http://localhost.evil.example",
        b"Host: localhost\r\nOrigin: http://localhost:81",
        b"X: no host",
    ],
)
def test_headers_that_two_programs_could_read_differently_are_refused(observations: Observations, lines: bytes) -> None:
    """A proxy in front of the tracker could see another request than the tracker does."""

    async def talk(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /api/v1/topologies HTTP/1.1\r\nConnection: close\r\n" + lines + b"\r\n\r\nabc")
        answer = await everything(reader)
        writer.close()
        return answer

    answer = served(observations, talk)
    assert answer.split(b" ")[1] in {b"400", b"403", b"431"}
    assert b"words" not in answer


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n", 431),
        (b"no request\r\n\r\n", 400),
    ],
    ids=["url", "name", "headers", "garbage"],
)
def test_what_is_no_request_gets_an_answer_and_no_reset(observations: Observations, head: bytes, code: int) -> None:
    """A client sends all of its request before it reads: the server takes the rest, so that the answer arrives."""

    async def talk(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(head)
        await writer.drain()
        answer = await reader.read()  # to the end: a reset would be an error
        writer.close()
        return answer

    head_lines, _, body = served(observations, talk).partition(b"\r\n\r\n")
    assert int(head_lines.split(b" ")[1]) == code
    assert b"application/problem+json" in head_lines
    assert len(body) < 1_000


def test_an_error_repeats_no_long_name(observations: Observations) -> None:
    """The longest name that a request can have would be most of the answer, and of each line of a log."""

    async def talk(host: str, port: int) -> list[httpx.Response]:
        places = ("topologies/words/tasks/{}", "topologies/{}", "topologies/words/tasks?component={}")
        near = f"http://{host}:{port}/api/v1/clusters/near"
        async with httpx.AsyncClient() as client:
            found = [await client.get(f"{near}/{each.format('x' * 15_000)}") for each in places]
            return [*found, await client.get(f"http://{host}:{port}/api/v1/clusters/{'x' * 15_000}/topologies/words")]

    for answer in served(observations, talk):
        assert answer.status_code in {400, 404}
        assert len(answer.content) < 1_500


@pytest.mark.parametrize(("most", "idle"), [(40, 300), pytest.param(None, 2_000, marks=pytest.mark.soak)])
def test_idle_connections_keep_nobody_out(
    observations: Observations, monkeypatch: pytest.MonkeyPatch, most: int | None, idle: int
) -> None:
    """A new client takes the place of the connection that has waited longest; a half-sent request waits, too.

    Without that, each request was refused for as long as the others stayed.
    """
    if most is not None:
        monkeypatch.setattr(service, "_MOST_CONNECTIONS", most)
    monkeypatch.setattr(bounded_protocol, "_REQUEST_S", 2 * DEADLINE_S)  # so none ends by its time

    async def talk(host: str, port: int) -> tuple[list[int], int, int]:
        writers, ends = [], []
        for number in range(idle):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET / HT" if number % 2 else b"")
            writers.append(writer)
            ends.append(asyncio.create_task(everything(reader)))
        async with httpx.AsyncClient() as friend:
            codes = [(await friend.get(f"http://{host}:{port}/health")).status_code for _ in range(3)]
        share = service._MOST_CONNECTIONS // 2
        await asyncio.wait(ends[: idle - share])
        staying = sum(not each.done() for each in ends)
        for writer in writers:
            writer.close()
        await asyncio.gather(*ends)
        return codes, staying, share

    codes, staying, share = served(observations, talk, deadline_s=DEADLINE_S + idle / 40)
    assert codes == [200, 200, 200]
    assert staying == share - 1  # one place is the friend's


def test_an_address_with_its_share_in_use_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live streams wait for nothing, so none of them is ended: further ones are refused, and others are answered.

    Further ones come in pairs, and the first of a pair waits until the second one is answered. A refused connection is
    closed with its answer: it would be refused also when there is place again.
    """
    monkeypatch.setattr(service, "_MOST_CONNECTIONS", 20)
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    held = asyncio.Event()

    async def live(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await held.wait()

    async def run() -> tuple[list[bytes], list[bytes], bytes]:
        server = service._Server(service._config(live), held, lambda: None)
        with service._listening(Address("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()
            opened, answers = [], []

            async def connect(source: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                opened.append(await asyncio.open_connection(host, port, local_addr=(source, 0)))
                return opened[-1]

            async with asyncio.timeout(DEADLINE_S):
                for _ in range(10):
                    reader, writer = await connect("127.0.0.2")
                    writer.write(request)
                    answers.append((await reader.readline()).split()[1])
                for _ in range(6):
                    pair = [await connect("127.0.0.2") for _ in range(2)]
                    for reader, writer in reversed(pair):
                        writer.write(request)
                        answers.append(await everything(reader))
                reader, writer = await connect("127.0.0.3")
                writer.write(request)
                friend = (await reader.readline()).split()[1]
                for _, each in opened:
                    each.close()
                server.handle_exit(signal.SIGTERM, None)
                await serving
        return answers[:10], answers[10:], friend

    begun, refused, friend = asyncio.run(run())
    assert begun == [b"200"] * 10
    assert len(refused) == 12
    assert {each.split()[1] for each in refused} == {b"503"}
    assert all(b"connection: close" in each and b"10 connections in use" in each for each in refused)
    assert friend == b"200"


def test_a_client_that_leaves_within_its_request_leaves_no_traceback(
    observations: Observations, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no failure of the tracker, and everybody can do it a thousand times."""

    async def talk(host: str, port: int) -> None:
        for body in (b'{"act', b""):
            _, writer = await asyncio.open_connection(host, port)
            writer.write(
                b"POST " + ACTIONS.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: 60\r\n\r\n" + body
            )
            await writer.drain()
            writer.transport.abort()
        async with httpx.AsyncClient() as friend:
            await friend.get(f"http://{host}:{port}/health")

    served(observations, talk, Access(Address("127.0.0.1", 1), TOKEN), tmp_path / "audit.jsonl")
    assert caplog.text == ""


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_a_body_that_is_no_chunk_leaves_no_traceback(
    observations: Observations, caplog: pytest.LogCaptureFixture, method: bytes
) -> None:
    """An answer to HEAD has no body, also when it refuses one of the request."""

    async def talk(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        head = b" / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(method + head + b"zz\r\n")
        answer = await everything(reader)
        writer.close()
        return answer

    lines, _, body = served(observations, talk).partition(b"\r\n\r\n")
    assert lines.split()[1] == b"400"
    assert bool(body) is (method != b"HEAD")
    assert caplog.messages == ["Invalid HTTP request received."]


def test_what_clients_cause_is_logged_once(observations: Observations, caplog: pytest.LogCaptureFixture) -> None:
    """The log has one line a minute for each kind, so that no client fills a disk."""

    async def talk(host: str, port: int) -> None:
        for _ in range(20):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            await reader.readline()
            writer.close()

    served(observations, talk)
    assert caplog.text.count("Unsupported upgrade request.") == 1
