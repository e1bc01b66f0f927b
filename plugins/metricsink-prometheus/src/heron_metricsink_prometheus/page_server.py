"""Serves the page over HTTP, on threads of its own and few of them: who reads slowly is in nobody's way for long."""

from __future__ import annotations

import errno
import logging
import socket
import socketserver
import threading
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from heron.errors import SinkError
from heron_metricsink_prometheus.scrapes import Scrapes

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

__all__ = ["PageServer"]

_TIMEOUT_S = 10.0  # for a request to come, and for a page to be taken: Prometheus itself gives up after 10 s
_READERS = 8  # at once; the others are turned away
_CLOSE_S = 0.05

_log = logging.getLogger(__name__)


class PageServer:
    """Listens from its making to `close`, on the first port of a range that is free."""

    def __init__(self, board: Collector, scrapes: Scrapes, host: str, ports: range) -> None:
        """A range that begins with 0 means any free port.

        Raises:
            SinkError: when none is free, or the host is no address of this machine.
        """
        registry = CollectorRegistry()
        registry.register(board)
        self._server: _Server | None = _listening(host, ports, scrapes.of(make_wsgi_app(registry)))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSE_S,), name="prometheus-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Serves no more; idempotent."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._readers = threading.BoundedSemaphore(_READERS)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """As the library's, without asking a name server for our name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        if self._readers.acquire(blocking=False):
            super().process_request(request, address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        try:
            super().process_request_thread(request, address)
        finally:
            self._readers.release()

    def handle_error(self, _request: object, address: object) -> None:
        _log.debug("a reader of the page at %s has gone", address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = _TIMEOUT_S

    def log_message(self, *_: object) -> None:
        """Nobody reads of each page that was read."""


def _listening(host: str, ports: range, app: WSGIApplication) -> _Server:
    for port in ports:
        try:
            return make_server(host, port, app, _Server6 if ":" in host else _Server, handler_class=_Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                msg = f"cannot listen at {host}:{port}: {error}; is metricsink.host an address of this machine?"
                raise SinkError(msg, lost=1, reason="unserved") from error
    msg = f"no port of {host} from {ports[0]} to {ports[-1]} is free; change metricsink.port or metricsink.ports"
    raise SinkError(msg, lost=1, reason="unserved")
