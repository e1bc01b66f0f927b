"""The HTTP side of a test server: requests as values, answers with streams, and faults that a test has ordered.

A test orders faults at ``/heron-testing/faults`` (POST one, GET those that are left, DELETE all). They are kept in a
file, so a restarted server still has them. A server adds controls of its own below ``/heron-testing``.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = [
    "CONTROLS",
    "Answer",
    "Control",
    "Fault",
    "HttpService",
    "Request",
    "RequestFaults",
    "read_json",
    "write_json",
]

CONTROLS = "/heron-testing/"
"""The beginning of the paths for tests."""

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client; `path` is decoded."""

    method: str
    path: str
    query: Mapping[str, str]
    """The last value of each name; `queries` has all."""
    queries: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - a client may send any document
        """Return the document of the body. Raises ValueError when it is not JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. A `body` that is not bytes is a stream, whose parts are sent at once, in chunks.

    A stream that has nothing to send returns an empty part now and then: it ends when the client has gone.
    """

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """End a stream that has ``close``, as a generator has: nobody takes further parts."""
        close = getattr(self.body, "close", None)
        if close is not None:
            close()

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> Answer:
        """Return an answer with a document; ``content_type`` becomes the header ``content-type``."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return cls(status, json.dumps(value).encode(), {"content-type": "application/json", **named})


Control = Callable[[Request], object]
"""Answers a test with a document. It raises LookupError, TypeError or ValueError for what the server does not know."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next `count` requests whose operation matches a pattern.

    ``drop`` closes the connection without an answer after the work is done; ``refuse`` answers with `status` and `body`
    and does nothing; ``delay`` waits for `delay_s` seconds before the work.
    """

    operation: str
    """A pattern that matches the whole operation: ``METHOD PATH``, or the name that the server gives it."""
    action: Literal["drop", "refuse", "delay"]
    count: int = 1
    status: int = 503
    body: str = ""
    delay_s: float = 0.0


class RequestFaults:
    """The faults that are left, in a file; for use from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Add a fault behind the others. Raises ValueError for a fault that cannot happen."""
        re.compile(fault.operation)
        if fault.action not in {"drop", "refuse", "delay"} or fault.count < 1:
            msg = f"a fault is drop, refuse or delay, and its count is at least 1: {fault}"
            raise ValueError(msg)
        with self._lock:
            write_json(self._path, [asdict(each) for each in (*self._read(), fault)])

    def left(self) -> list[Fault]:
        """Return those that are left."""
        with self._lock:
            return self._read()

    def clear(self) -> None:
        """Remove all."""
        with self._lock:
            write_json(self._path, [])

    def take(self, operation: str) -> Fault | None:
        """Return the first fault for an operation, and count it."""
        with self._lock:
            faults = self._read()
            for index, each in enumerate(faults):
                if re.fullmatch(each.operation, operation):
                    faults[index : index + 1] = [replace(each, count=each.count - 1)] if each.count > 1 else []
                    write_json(self._path, [asdict(fault) for fault in faults])
                    return each
        return None

    def _read(self) -> list[Fault]:
        return [Fault(**each) for each in read_json(self._path, [])]


class HttpService:
    """Serves on the loopback address, one thread for each connection."""

    def __init__(
        self,
        port: int,
        respond: Callable[[Request], Answer],
        faults: RequestFaults,
        controls: Mapping[str, Control],
        operation: Callable[[Request], str] = lambda request: f"{request.method} {request.path}",
        host: str = _HOST,
    ) -> None:
        """`respond` answers a client, each of `controls` a test at its path; `operation` names a request for faults."""
        self._respond = respond
        self._faults = faults
        self._controls = {**controls, "faults": self._switch}
        self._operation = operation
        self._stopped = threading.Event()
        service = self

        class Handler(_Handler):
            def answer(self, request: Request) -> Answer | None:
                return service._answer(request)

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True

    def run(self) -> None:
        """Serve until the process ends."""
        self._server.serve_forever(poll_interval=60.0)

    def _answer(self, request: Request) -> Answer | None:
        if request.path.startswith(CONTROLS):
            return self._control(request)
        fault = self._faults.take(self._operation(request))
        if fault and fault.action == "refuse":
            return Answer(fault.status, fault.body.encode(), {"content-type": "application/json"})
        if fault and fault.action == "delay":
            self._stopped.wait(fault.delay_s)
        answer = self._respond(request)
        if fault and fault.action == "drop":
            answer.close()
            return None
        return answer

    def _control(self, request: Request) -> Answer:
        try:
            return Answer.json(self._controls[request.path.removeprefix(CONTROLS)](request))
        except (LookupError, TypeError, ValueError, re.error) as error:
            return Answer.json({"message": f"{type(error).__name__}: {error}"}, 400)

    def _switch(self, request: Request) -> object:
        if request.method == "POST":
            self._faults.add(Fault(**request.json()))
        elif request.method == "DELETE":
            self._faults.clear()
        return [asdict(each) for each in self._faults.left()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is one write

    def answer(self, request: Request) -> Answer | None:
        """Answer a request; None closes the connection without an answer."""
        raise NotImplementedError

    def serve(self) -> None:
        """Read one request and send its answer."""
        place = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        queries = parse_qs(place.query, keep_blank_values=True)
        query = {name: values[-1] for name, values in queries.items()}
        answer = self.answer(Request(self.command, unquote(place.path), query, queries, headers, body))
        try:
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self._send(answer)
        except OSError:  # the client has gone
            self.close_connection = True
        finally:
            if answer is not None:
                answer.close()

    do_DELETE = do_GET = do_HEAD = do_PATCH = do_POST = do_PUT = serve

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if isinstance(answer.body, bytes):
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else answer.body)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for part in answer.body:
            if not part:
                if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    raise ConnectionResetError
                continue
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def read_json(path: Path, default: Any) -> Any:  # noqa: ANN401 - of any shape
    """Return the document of a file, or `default` when there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default


def write_json(path: Path, value: object) -> None:
    """Replace a file by a document, at once."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(value), encoding="utf-8")
    new.replace(path)
