"""Serves the page over HTTP on a few threads, so that a slow reader does not block other readers for long."""

from __future__ import annotations

import errno
import logging
import socket
import socketserver
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from heron.clock import Clock, SystemClock, monotonic_s
from heron.errors import SinkError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["PageServer", "Scrapes"]

_TIMEOUT_S = 10.0  # from the connection to the end of the page: the default timeout of a scrape is 10 s
_READERS = 8  # at the same time; further readers are rejected
_CLOSE_S = 0.05
_SCRAPE_HEADER = "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"

_log = logging.getLogger(__name__)


class Scrapes:
    """The time of the last scrape. A missing scrape is the only sign that Prometheus is away.

    People and probes read the page too. Only a scrape has a header with the timeout of the scraper. The threads of the
    page server write the time, and the thread of the sink reads it.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last_s: float | None = None

    def recorded(self, page: WSGIApplication) -> WSGIApplication:
        """Return an application that serves the page and records the time of each scrape."""

        def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if _SCRAPE_HEADER in environ:
                self._last_s = self._clock.monotonic_s()
            return page(environ, start_response)

        return serve

    def silent_s(self) -> float:
        """Return the seconds since the last scrape; 0 before the first scrape."""
        return 0.0 if self._last_s is None else self._clock.monotonic_s() - self._last_s


class PageServer:
    """Listens on the first free port of a range, until `close`."""

    def __init__(self, collector: Collector, scrapes: Scrapes, host: str, ports: range) -> None:
        """Start to listen; a range that begins with 0 means any free port.

        Raises:
            SinkError: when no port is free, or the host is not an address of this machine.
        """
        registry = CollectorRegistry()
        registry.register(collector)
        self._server: _Server | None = _listening(host, ports, scrapes.recorded(make_wsgi_app(registry)))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSE_S,), name="prometheus-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop the server. Idempotent."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._readers = threading.BoundedSemaphore(_READERS)
        self._until_s: dict[socket.socket | tuple[bytes, socket.socket], float] = {}
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind like the library, but without a DNS query for the name of this machine, which can be slow."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        if self._readers.acquire(blocking=False):
            self._until_s[request] = monotonic_s() + _TIMEOUT_S
            super().process_request(request, address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        try:
            super().process_request_thread(request, address)
        finally:
            self._until_s.pop(request, None)
            self._readers.release()

    def service_actions(self) -> None:
        """Disconnect readers that are late, also those that send or take a byte now and then; the loop calls it."""
        now_s = monotonic_s()
        for request, until_s in self._until_s.copy().items():  # threads end readers meanwhile
            if until_s < now_s and isinstance(request, socket.socket):
                with suppress(OSError):  # it has ended meanwhile
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, _request: object, address: object) -> None:
        _log.debug("the reader of the page at %s has disconnected", address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log no line per request."""


def _listening(host: str, ports: range, app: WSGIApplication) -> _Server:
    for port in ports:
        try:
            return make_server(host, port, app, _Server6 if ":" in host else _Server, handler_class=_Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                msg = f"cannot listen at {host}:{port}: {error}; is metricsink.host an address of this machine?"
                raise SinkError(msg, lost=1, reason="unserved") from error
    msg = f"no free port at {host} from {ports[0]} to {ports[-1]}; change metricsink.port or metricsink.ports"
    raise SinkError(msg, lost=1, reason="unserved")
