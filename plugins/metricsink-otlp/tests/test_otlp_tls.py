"""The OTLP sink over TLS: it sends to a collector whose certificate it can check, and nothing to another one."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)

from heron.errors import SinkError
from heron.spi.metricsink import MetricsRecord
from heron_metricsink_otlp import OtlpSink
from heron_testing.contracts.metricsink import AT_S, EMITTED, SOURCE

Names = list[str]
Collector = Callable[[trustme.LeafCert, Names], AbstractContextManager[int]]


@contextmanager
def over_grpc(certificate: trustme.LeafCert, names: Names) -> Iterator[int]:
    """Serve on a port, and note the names of the metrics that arrive."""

    class Service(MetricsServiceServicer):
        def Export(  # the name in the protocol
            self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext
        ) -> ExportMetricsServiceResponse:
            names.extend(names_of(request))
            return ExportMetricsServiceResponse()

    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        add_MetricsServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call]  # generated
        chain = b"".join(each.bytes() for each in certificate.cert_chain_pems)
        identity = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
        port = server.add_secure_port("127.0.0.1:0", identity)
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


@contextmanager
def over_http(certificate: trustme.LeafCert, names: Names) -> Iterator[int]:
    """The same for a web server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that the server calls
            body = self.rfile.read(int(self.headers["content-length"]))
            names.extend(names_of(ExportMetricsServiceRequest.FromString(body)))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base
            """Writes nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that refuses the certificate ends the connection."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def names_of(request: ExportMetricsServiceRequest) -> list[str]:
    return [
        metric.name
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority of one's own, whose certificate is in ``ca.pem``."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    return made


def record_to(port: int, protocol: str, **options: object) -> None:
    """Send one metric."""
    endpoint = f"https://127.0.0.1:{port}"
    sink = OtlpSink.open({"endpoint": endpoint, "protocol": protocol, "compression": "none", **options})
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    try:
        sink.flush()
    finally:
        sink.close()


COLLECTORS = [pytest.param(over_grpc, "grpc", id="grpc"), pytest.param(over_http, "http", id="http")]


@pytest.mark.parametrize(("collector", "protocol"), COLLECTORS)
def test_a_collector_with_a_certificate_of_the_file_gets_the_metrics(
    collector: Collector, protocol: str, authority: trustme.CA, tmp_path: Path
) -> None:
    """A company has an authority of its own."""
    names: Names = []
    with collector(authority.issue_cert("127.0.0.1"), names) as port:
        record_to(port, protocol, ca_file=str(tmp_path / "ca.pem"))
    assert names == [f"heron.{EMITTED.name}"]


@pytest.mark.parametrize(("collector", "protocol"), COLLECTORS)
@pytest.mark.parametrize(
    ("host", "options"),
    [("127.0.0.1", {}), ("elsewhere.example", {"ca_file": "ca.pem"})],
    ids=["of an unknown authority", "of another host"],
)
def test_a_collector_with_another_certificate_gets_nothing(
    collector: Collector,
    protocol: str,
    authority: trustme.CA,
    tmp_path: Path,
    host: str,
    options: dict[str, str],
) -> None:
    """The connection could be to anybody. The error names the reason; the data is kept, as while it is away."""
    names: Names = []
    at = {name: str(tmp_path / value) for name, value in options.items()}
    with (
        collector(authority.issue_cert(host), names) as port,
        pytest.raises(SinkError, match=r"(?i)verif"),
    ):
        record_to(port, protocol, **at)
    assert names == []
