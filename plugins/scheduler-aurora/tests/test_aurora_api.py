"""Requests to a small HTTP server that answers in Thrift: leaders, credentials, refusals, and other servers."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import thriftpy2
import trustme
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TMessageType
from thriftpy2.transport import TMemoryBuffer

from heron.errors import SchedulerError
from heron.spi.options import decode_options
from heron_scheduler_aurora.aurora_api import AuroraApi, AuroraRefusal
from heron_scheduler_aurora.aurora_words import ResponseCode
from heron_scheduler_aurora.options import AuroraOptions

_ANN = "Basic " + base64.b64encode(b"ann:s3cret").decode()
_IDL = thriftpy2.load(
    str(Path(__file__).parents[1] / "src" / "heron_scheduler_aurora" / "aurora.thrift"), "heron_aurora_test_thrift"
)


class _Aurora:
    """Schedulers that answer each call with `code`. The first one leads, the others know it."""

    def __init__(self) -> None:
        self.code = ResponseCode.OK
        self.said = ""
        self.calls: list[str] = []
        self.status = 200
        self.body = b""
        self.credentials: list[str | None] = []
        self.leader = self.serve(leads=True)
        self.follower = self.serve(leads=False)
        self.led_to = self.leader

    def close(self) -> None:
        for each in self._servers:
            each.shutdown()
            each.server_close()

    _servers: list[ThreadingHTTPServer]

    def serve(self, *, leads: bool, certificate: trustme.LeafCert | None = None) -> str:
        """Start a scheduler and return its address; with a certificate, only TLS reaches it."""
        aurora = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                aurora.credentials.append(self.headers["authorization"])
                if not leads:
                    self.send_response(307)
                    self.send_header("location", f"{aurora.led_to}/api")
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                answer = aurora.body or aurora._answer(content)
                self.send_response(aurora.status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """A client that refuses the certificate ends the connection."""

        server = Server(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        self._servers = [*getattr(self, "_servers", []), server]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"

    def _answer(self, content: bytes) -> bytes:
        request = TBinaryProtocol(TMemoryBuffer(content))  # type: ignore[no-untyped-call]
        name, _, number = request.read_message_begin()  # type: ignore[no-untyped-call]
        self.calls.append(name)
        details = [_IDL.ResponseDetail(message=self.said)] if self.said else []
        reason = _IDL.PendingReason(taskId="t1", reason="Insufficient: RAM")
        result = _IDL.Result(getPendingReasonResult=_IDL.GetPendingReasonResult(reasons=[reason]))
        response = _IDL.Response(responseCode=int(self.code), details=details, result=result)
        buffer = TMemoryBuffer()  # type: ignore[no-untyped-call]
        protocol = TBinaryProtocol(buffer)  # type: ignore[no-untyped-call]
        protocol.write_message_begin(name, TMessageType.REPLY, number)  # type: ignore[no-untyped-call]
        getattr(_IDL.Scheduler, f"{name}_result")(success=response).write(protocol)
        return bytes(buffer.getvalue())  # type: ignore[no-untyped-call]


@pytest.fixture
def aurora() -> Iterator[_Aurora]:
    made = _Aurora()
    yield made
    made.close()


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority of one's own, whose certificate is in ``ca.pem``."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return made


def _api(*addresses: str, **options: str) -> AuroraApi:
    given = {"cluster": "west", "addresses": list(addresses), **options}
    return AuroraApi(decode_options(given, AuroraOptions, "scheduler"))


def test_an_answer_is_a_document(aurora: _Aurora) -> None:
    """The field of the result that the method fills, whatever its name."""
    found = _api(aurora.leader).call("getPendingReason", query={"jobKeys": [{"role": "r"}]})
    assert found == {"reasons": [{"taskId": "t1", "reason": "Insufficient: RAM"}]}
    assert aurora.credentials == [None]


def test_the_leader_gets_the_credentials_too(aurora: _Aurora) -> None:
    """A follower leads to the leader, on another host; libraries leave the credentials behind there."""
    _api("http://127.0.0.1:9", aurora.follower, login="ann", password="s3cret").call("getTierConfigs")
    assert aurora.credentials == [_ANN, _ANN]
    assert aurora.calls == ["getTierConfigs"]


def test_another_host_does_not_get_the_credentials(aurora: _Aurora) -> None:
    """Whoever answers at one address could otherwise ask for the login of all."""
    aurora.led_to = aurora.leader.replace("127.0.0.1", "localhost")
    with pytest.raises(
        SchedulerError, match=r"names the leader http://localhost:\d+, .*add it to scheduler\.addresses"
    ):
        _api(aurora.follower, login="ann", password="s3cret").call("getTierConfigs")
    assert aurora.credentials == [_ANN]


def test_a_leader_without_encryption_does_not_get_the_credentials(
    aurora: _Aurora, authority: trustme.CA, tmp_path: Path
) -> None:
    """The person has asked for https."""
    follower = aurora.serve(leads=False, certificate=authority.issue_cert("127.0.0.1"))
    with pytest.raises(SchedulerError, match=r"names the leader http://127.* not followed: it must redirect to https"):
        _api(follower, login="ann", password="s3cret", ca_file=str(tmp_path / "ca.pem")).call("getTierConfigs")
    assert aurora.credentials == [_ANN]


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_certificate_is_verified(aurora: _Aurora, authority: trustme.CA, tmp_path: Path, scheme: str) -> None:
    """Also that of an address in capitals."""
    address = aurora.serve(leads=True, certificate=authority.issue_cert("127.0.0.1")).replace("https", scheme)
    with pytest.raises(SchedulerError, match="CERTIFICATE_VERIFY_FAILED"):
        _api(address, login="ann", password="s3cret").call("getTierConfigs")
    assert aurora.credentials == []
    _api(address, login="ann", password="s3cret", ca_file=str(tmp_path / "ca.pem")).call("getTierConfigs")
    assert aurora.credentials == [_ANN]


def test_a_machine_that_is_off_is_passed_over(aurora: _Aurora) -> None:
    """It refuses nothing; here the queue of a socket is full, so that connections wait."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        _api(f"http://127.0.0.1:{full.getsockname()[1]}", aurora.leader).call("getTierConfigs")
    assert aurora.calls == ["getTierConfigs"]


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        (
            ResponseCode.INVALID_REQUEST,
            "Insufficient resource quota: CPU exceeded by 3.20 core(s)",
            "tier: preem",
        ),
        (ResponseCode.AUTH_FAILED, "Subject is not permitted", "grant the rights"),
        (ResponseCode.ERROR_TRANSIENT, "", "ERROR_TRANSIENT.*; try again"),
    ],
)
def test_a_refusal_has_the_words_of_aurora_and_a_remedy(
    aurora: _Aurora, code: ResponseCode, said: str, told: str
) -> None:
    """A quota says by how much it is exceeded."""
    aurora.code, aurora.said = code, said
    with pytest.raises(AuroraRefusal, match=told) as caught:
        _api(aurora.leader).call("getTierConfigs")
    assert caught.value.code is code
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("status", "options", "told"),
    [
        (401, {}, "Unauthorized .401.; set scheduler.login and scheduler.password: none was sent"),
        (401, {"login": "ann", "password": "s3cret"}, "Unauthorized .401.; correct scheduler.login"),
        (404, {}, "correct scheduler.addresses"),
        (503, {}, "does not answer: it has no leader"),
    ],
)
def test_a_refusal_of_the_server_names_what_to_correct(
    aurora: _Aurora, status: int, options: dict[str, str], told: str
) -> None:
    """No message has the password."""
    aurora.status = status
    with pytest.raises(SchedulerError, match=told) as caught:
        _api(aurora.leader, **options).call("getTierConfigs")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"\x80\x01\x00\x02", b"\0" * 64])
def test_another_server_is_told_from_aurora(aurora: _Aurora, body: bytes) -> None:
    """A person may name the port of something else."""
    aurora.body = body
    with pytest.raises(SchedulerError, match=r"it is not Aurora .*; correct scheduler\.addresses"):
        _api(aurora.leader).call("getTierConfigs")


def test_no_server_at_all_is_named() -> None:
    """All addresses that were tried."""
    with pytest.raises(SchedulerError, match=r"aurora at http://127\.0\.0\.1:9 does not answer: .*refused"):
        _api("http://127.0.0.1:9").call("getTierConfigs")


def test_a_certificate_file_that_is_missing_is_named() -> None:
    """Before anything is sent."""
    with pytest.raises(SchedulerError, match=r"scheduler\.ca_file: /nowhere cannot be used"):
        _api("https://127.0.0.1:9", ca_file="/nowhere").call("getTierConfigs")
