"""Requests of every malformed kind: each one gets an answer of the API, and none an internal error."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message, Scope

from heron.errors import UsageError
from heron_cli.client import Client
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock
from heron_testing.hostile_bytes import Decoder, attack

INPUTS = 250
HEADERS = [(b"host", b"127.0.0.1:8888"), (b"content-type", b"application/json")]
WORDS = "/api/v1/clusters/near/topologies/words"
GETS = (
    "/api/v1/topologies",
    f"{WORDS}?",
    f"{WORDS}/metrics?name=emit-count&component=lines",
    f"{WORDS}/query?query=RATE(TS(lines,*,emit-count))&start=-60",
    f"{WORDS}/history?name=emit-count&start=-3600&step=60",
    "/topologies/metrics?cluster=near&topology=words&metricname=__emit-count&interval=60",
    "/topologies/metricstimeline?cluster=near&topology=words&metricname=__emit-count&starttime=1&endtime=2",
    "/topologies/metricsquery?cluster=near&topology=words&query=DIVIDE(1,TS(lines,*,emit-count))&starttime=1&endtime=2",
    "/api/v1/openapi.json",
)
BODIES = tuple(
    json.dumps(each).encode()
    for each in (
        {"kind": "activate", "confirm": "words"},
        {"kind": "update", "confirm": "words", "parallelism": {"count": 2}},
        {"kind": "config", "confirm": "words", "changes": {"a": [[[[1]]]]}},
    )
)


def refused(_cluster: str, **_options: object) -> Client:
    """A profile that cannot be opened: no request of these tests reaches a topology."""
    message = "no profile in this test"
    raise UsageError(message)


@pytest.fixture
def app(observations: Observations, clock: FakeClock, tmp_path: Path) -> ASGIApp:
    """The application with everything switched on that reads a request."""
    recorder = Recorder(tmp_path / "history", 1 << 20, clock, gap_s=60.0)
    actions = Actions(refused, AuditFile(tmp_path / "audit"), clock)
    questions = Questions(refused, logs_allowed=True, tuples_allowed=True)
    return application(
        observations, Access(Address("127.0.0.1", 8888)), asyncio.Event(), recorder, questions, actions=actions
    )


def status_of(app: ASGIApp, method: str, target: bytes, body: bytes = b"") -> int:
    """Send a request with this target, as a server that has parsed its first line would; 0 without an answer."""
    raw_path, _, query = target.partition(b"?")
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw_path.decode("utf-8", "replace"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": HEADERS,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8888),
    }
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def ask() -> None:
        await asyncio.wait_for(app(scope, receive, send), 20.0)

    asyncio.run(ask())
    return statuses[0] if statuses else 0


class InternalError(Exception):
    """The application has answered with an internal error, or not at all."""


class Refused(Exception):
    """The application has refused a request."""


def checked(status: int) -> None:
    """Raise by a status."""
    if status == 0 or (status >= 500 and status != 503):
        raise InternalError(str(status))
    if status >= 400:
        raise Refused(str(status))


def test_changed_requests_are_answered(app: ASGIApp) -> None:
    """Paths and queries with any bytes: unknown names, numbers out of range, text that is no UTF-8."""
    targets = [each.encode() for each in GETS]
    decoder = Decoder(
        "requests",
        lambda data: checked(status_of(app, "GET", data)),
        (),
        (Refused,),
        least_bytes=32 << 20,
        bait=targets,
    )
    report = attack(decoder, INPUTS)
    assert report.refused > INPUTS // 3


def test_changed_actions_are_refused(app: ASGIApp) -> None:
    """JSON of other forms, nested deeply, or no JSON at all."""
    deep = b'{"kind":' + b"[" * 20_000
    target = f"{WORDS}/actions".encode()

    def send(data: bytes) -> None:
        checked(status_of(app, "POST", target, data))

    decoder = Decoder("actions", send, (), (Refused,), least_bytes=32 << 20, bait=(*BODIES, deep))
    report = attack(decoder, INPUTS)
    assert report.refused > INPUTS // 3
