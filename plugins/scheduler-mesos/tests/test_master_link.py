"""The link to the masters, against masters that say what a test tells them to."""

from __future__ import annotations

import base64
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_mesos.master_link import LinkLost, MasterLink, framework_id
from heron_scheduler_mesos.mesos_access import MesosAccess, find_access, leader
from heron_scheduler_mesos.options import MesosOptions
from heron_scheduler_mesos.visit import visit

_LIMIT_S = 20.0
SUBSCRIBED: Json = {"type": "SUBSCRIBED", "subscribed": {"framework_id": {"value": "f-1"}}}


class ScriptedMaster:
    """Answers each request with a status and headers; with 200 it streams one event, and ends when it is told to."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers
        self.call_status = 202
        self.event = SUBSCRIBED
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.stop = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.scheme = "http"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https"

    def close(self) -> None:
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        master = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                master.requests.append(({key.lower(): value for key, value in self.headers.items()}, body))
                subscribes = body["type"] == "SUBSCRIBE"
                self.send_response(master.status if subscribes else master.call_status)
                for key, value in master.headers.items():
                    self.send_header(key.replace("_", "-"), value)
                if not subscribes or master.status != 200:
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"no")
                    return
                self.send_header("Mesos-Stream-Id", f"stream-{len(master.requests)}")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                record = json.dumps(master.event).encode()
                chunk = str(len(record)).encode() + b"\n" + record
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                master.stop.wait(_LIMIT_S)
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: object) -> None:
                return

        return Handler


Masters = Callable[..., ScriptedMaster]
Links = Callable[..., MasterLink]


@pytest.fixture
def masters() -> Iterator[Masters]:
    made: list[ScriptedMaster] = []

    def make(status: int = 200, **headers: str) -> ScriptedMaster:
        made.append(ScriptedMaster(status, headers))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def links() -> Iterator[Links]:
    made: list[MasterLink] = []

    def make(access: MesosAccess, silence_s: float = _LIMIT_S) -> MasterLink:
        made.append(MasterLink(access, silence_s))
        return made[-1]

    yield make
    for each in made:
        each.close(_LIMIT_S)


def next_event(link: MasterLink) -> Json | LinkLost:
    """Wait for one event."""
    while True:
        assert select.select([link], [], [], _LIMIT_S)[0], "an event within the limit"
        for each in link.receive():
            return each


def access(*masters: ScriptedMaster) -> MesosAccess:
    return find_access(MesosOptions(masters=tuple(each.url for each in masters)))


def test_the_leader_is_found_through_another_master_and_kept(masters: Masters, links: Links) -> None:
    """Masters name the leader without a scheme; calls go there with the id of the stream."""
    first = masters()
    other = masters(307, Location=f"//127.0.0.1:{first.server.server_port}/api/v1/scheduler")
    link = links(access(other))
    link.subscribe({"name": "heron-t"})
    assert framework_id(next_event(link)) == "f-1"  # type: ignore[arg-type]
    assert link.leader == first.url
    link.call({"type": "REVIVE"})
    assert link.close(_LIMIT_S)
    headers, body = first.requests[-1]
    assert (headers["mesos-stream-id"], body) == ("stream-1", {"type": "REVIVE"})


def test_a_leader_that_is_gone_is_found_again(masters: Masters, links: Links) -> None:
    """The last leader is asked first, then all masters; those that elect one answer 503."""
    old, new = masters(), masters()
    link = links(access(old, masters(503), new))
    link.subscribe({"name": "heron-t"})
    next_event(link)
    old.close()
    lost = next_event(link)
    assert isinstance(lost, LinkLost)
    link.subscribe({"name": "heron-t", "id": {"value": "f-1"}})
    next_event(link)
    assert link.leader == new.url
    assert new.requests[-1][1]["framework_id"] == {"value": "f-1"}


@pytest.mark.parametrize(
    ("status", "said", "refused"),
    [
        (401, "scheduler.principal and scheduler.secret", True),
        (403, "scheduler.role", True),
        (404, "it is not a master of Mesos; correct scheduler.masters", True),
        (503, "no leading master", False),
    ],
)
def test_a_refusal_has_its_remedy(masters: Masters, links: Links, status: int, said: str, refused: bool) -> None:
    """What a person can mend ends the submission; what passes is tried again."""
    link = links(access(masters(status)))
    link.subscribe({"name": "heron-t"})
    lost = next_event(link)
    assert isinstance(lost, LinkLost)
    assert said in lost.reason
    assert lost.refused is refused


FRAMEWORK: Json = {"name": "heron-t", "id": {"value": "f-1"}}


def test_a_master_that_is_dead_leaves_time_for_the_next(masters: Masters) -> None:
    """`heron kill` has a few seconds; a machine that is off refuses no connection, so each attempt waits."""
    master = masters()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as dead, socket.create_connection(dead.getsockname()):
        port = dead.getsockname()[1]  # Linux drops further connections while one waits
        found, _ = visit(find_access(MesosOptions(masters=(f"http://127.0.0.1:{port}", master.url))), FRAMEWORK, 4.0)
    assert found == master.url
    assert [body["type"] for _, body in master.requests] == ["SUBSCRIBE", "TEARDOWN"]


@pytest.mark.parametrize(
    "said",
    [
        "Framework has been removed",
        "Completed framework attempted to re-subscribe",
        "Framework has been torn down",
    ],
)
def test_a_framework_that_is_removed_counts_as_torn_down(masters: Masters, said: str) -> None:
    """Its failover time-out has elapsed, or an operator has ended it; `heron kill` has nothing more to do."""
    master = masters()
    master.event = {"type": "ERROR", "error": {"message": said}}
    assert visit(access(master), FRAMEWORK, _LIMIT_S) == (master.url, ())


@pytest.mark.parametrize(
    "said",
    [
        "Framework failed over",
        "Not authorized to use role 'streaming'",
        "Changing framework's principal is not allowed",
    ],
)
def test_any_other_error_leaves_the_framework(masters: Masters, said: str) -> None:
    """Its containers run on, so `heron kill` must fail with the words of Mesos and a remedy."""
    master = masters()
    master.event = {"type": "ERROR", "error": {"message": said}}
    with pytest.raises(SchedulerError, match=rf"its containers may run on: {said}; correct scheduler.role"):
        visit(access(master), FRAMEWORK, _LIMIT_S)


def test_a_call_without_a_good_answer_ends_the_subscription(masters: Masters, links: Links) -> None:
    """Nothing more is heard of it, because it is unknown what has worked."""
    master = masters()
    master.call_status = 400
    link = links(access(master))
    link.subscribe({"name": "heron-t"})
    next_event(link)
    link.call({"type": "ACCEPT"})
    lost = next_event(link)
    assert isinstance(lost, LinkLost)
    assert "ACCEPT" in lost.reason
    link.call({"type": "DECLINE"})
    assert not link.close(_LIMIT_S)
    assert [body["type"] for _, body in master.requests] == ["SUBSCRIBE", "ACCEPT"]


def test_a_master_without_heartbeats_is_lost(masters: Masters, links: Links) -> None:
    """The connection may look alive for minutes after the network has broken."""
    link = links(access(masters()), 0.2)
    link.subscribe({"name": "heron-t"})
    next_event(link)
    assert isinstance(next_event(link), LinkLost)


def test_tls_and_basic_authentication(masters: Masters, links: Links, tmp_path: Path) -> None:
    """Only a master with a certificate of a known issuer gets the secret."""
    issuer = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert("127.0.0.1").configure_cert(context)
    master = masters()
    master.secure(context)
    known = tmp_path / "ca.pem"
    issuer.cert_pem.write_to_path(known)
    options = MesosOptions(masters=(master.url,), principal="heron", secret="open sesame", ca_file=str(known))
    link = links(find_access(options))
    link.subscribe({"name": "heron-t"})
    assert framework_id(next_event(link)) == "f-1"  # type: ignore[arg-type]
    sent = base64.b64decode(master.requests[-1][0]["authorization"].removeprefix("Basic "))
    assert sent == b"heron:open sesame"
    stranger = links(access(master))
    stranger.subscribe({"name": "heron-t"})
    lost = next_event(stranger)
    assert isinstance(lost, LinkLost)
    assert "certificate" in lost.reason
    assert len(master.requests) == 1


@pytest.mark.parametrize(
    "location", ["//m2:5050/api/v1/scheduler", "m2:5050", "http://m2:5050/api/v1/scheduler", "https://m2:5050"]
)
def test_a_redirect_keeps_the_scheme(location: str) -> None:
    """A master must not lead a secret out of TLS; documents of Mesos show the address in several forms."""
    assert leader("https://m1:5050", location) == "https://m2:5050"


@pytest.mark.parametrize("url", ["m1:5050", "zk://m1/mesos", "http://m1:5050/x", "http://ann:pw@m1:5050", "http://:1"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """The message shows no password."""
    with pytest.raises(SchedulerError, match=r"scheduler.masters: .* is not the URL of a master") as refused:
        find_access(MesosOptions(masters=(url,)))
    assert "pw" not in str(refused.value)
