"""Requests to small HTTP servers: certificates, and addresses that nobody answers."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from heron.errors import SchedulerError
from heron.spi.options import decode_options
from heron_scheduler_marathon.marathon_api import MarathonApi, find_access
from heron_scheduler_marathon.options import MarathonOptions

_INFO = b'{"frameworkId": "f"}'


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(_INFO)))
        self.end_headers()
        self.wfile.write(_INFO)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that refuses the certificate ends the connection."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def authority(tmp_path: Path, server: _Server) -> Path:
    """Return the certificate of the authority that has signed that of the server; only TLS reaches it now."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path / "ca.pem"


def _api(*addresses: str, **options: str) -> MarathonApi:
    given = decode_options({"addresses": list(addresses), "token": "s3cret", **options}, MarathonOptions, "scheduler")
    return MarathonApi(lambda: find_access(given))


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_certificate_is_verified(server: _Server, authority: Path, scheme: str) -> None:
    """Also that of an address in capitals."""
    address = f"{scheme}://127.0.0.1:{server.server_port}"
    with pytest.raises(SchedulerError, match="CERTIFICATE_VERIFY_FAILED"):
        _api(address).find("info")
    assert _api(address, ca_file=str(authority)).find("info") == {"frameworkId": "f"}


def test_the_certificates_of_mesos_are_verified(server: _Server, authority: Path) -> None:
    """Marathon itself may be asked without encryption."""
    page = f"https://127.0.0.1:{server.server_port}/state"
    with pytest.raises(SchedulerError, match="CERTIFICATE_VERIFY_FAILED"):
        _api("http://127.0.0.1:9").document(page)
    assert _api("http://127.0.0.1:9", ca_file=str(authority)).document(page) == {"frameworkId": "f"}


def test_a_machine_that_is_off_is_passed_over(server: _Server) -> None:
    """It refuses nothing; here the queue of a socket is full, so that connections wait."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        api = _api(f"http://127.0.0.1:{full.getsockname()[1]}", f"http://127.0.0.1:{server.server_port}")
        assert api.find("info") == {"frameworkId": "f"}
