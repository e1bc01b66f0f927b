"""What stands before a registry in tests: a proxy that can refuse."""

from __future__ import annotations

import http.client
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Answer", "Front", "serving"]


@dataclass
class Answer:
    """An answer in place of the registry's; `times` counts down."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    times: int = 1 << 30


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that were killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests in a thread; yield host and port."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Front:
    """Passes requests to a registry, notes them, and answers some itself."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.answers: dict[str, Answer] = {}
        """By a regular expression for ``METHOD PATH``."""
        self.requests: list[str] = []
        """Method and path of each request that the registry got."""
        self.sent_bytes = 0
        """Bytes of bodies that clients sent to the registry."""
        self.cut_after_bytes = 0
        """If not 0, the next longer answer is cut there."""
        self.tells_sizes = True
        """Whether the answers to HEAD have the length of the content."""
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                front.handle(self, target)

            do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.handler = Handler

    def refuse(self, pattern: str, status: int, code: str = "", times: int = 1 << 30, **headers: str) -> None:
        """Answer requests that match with a status, and an error with a code as registries send it."""
        body = json.dumps({"errors": [{"code": code, "message": "said the test"}]}) if code else ""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[pattern] = Answer(status, named, body, times)

    def handle(self, client: BaseHTTPRequestHandler, target: tuple[str, int]) -> None:
        line = f"{client.command} {client.path}"
        body = client.rfile.read(int(client.headers.get("Content-Length", 0)))
        for pattern, answer in self.answers.items():
            if answer.times and re.match(pattern, line):
                answer.times -= 1
                self._reply(client, answer.status, list(answer.headers.items()), answer.body.encode())
                return
        self.requests.append(line)
        self.sent_bytes += len(body)
        connection = http.client.HTTPConnection(*target, timeout=30)
        connection.request(client.command, client.path, body or None, dict(client.headers))
        got = connection.getresponse()
        content = got.read()
        kept = [each for each in got.getheaders() if each[0].lower() not in {"content-length", "connection"}]
        length = int(got.headers.get("content-length", 0)) if client.command == "HEAD" else len(content)
        self._reply(client, got.status, kept, content, length)
        connection.close()

    def _reply(
        self,
        client: BaseHTTPRequestHandler,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        length: int | None = None,
    ) -> None:
        client.send_response_only(status)
        for name, value in headers:
            client.send_header(name, value)
        if client.command != "HEAD" or self.tells_sizes:
            client.send_header("Content-Length", str(len(body) if length is None else length))
        client.end_headers()
        if client.command == "HEAD":
            return
        if 0 < self.cut_after_bytes < len(body):
            body, self.cut_after_bytes, client.close_connection = body[: self.cut_after_bytes], 0, True
        client.wfile.write(body)
