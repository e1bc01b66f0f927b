"""The example of an observer, installed as a user would do it, with a real topology and a real web server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugins" / "observer-webhook"


class Listener(ThreadingHTTPServer):
    """Stores the posted events; does not answer while `hangs` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.hangs = threading.Event()
        self.closing = threading.Event()

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """Return the facts of each event."""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self.posted:
            found.setdefault(each["event"], []).append(each["facts"])
        return found


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Listener

    def do_POST(self) -> None:  # the name is the library's
        """Receive an event."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append(json.loads(body))
        self.server.tokens.add(self.headers["Authorization"])
        if self.server.hangs.is_set():
            self.server.closing.wait(30)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Log nothing."""


@pytest.fixture
def listener(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """A web server, and the observer installed with its address."""
    site = tmp_path / "site"
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(site), "--python", sys.executable, str(EXAMPLE)], check=True)
    monkeypatch.setenv("PYTHONPATH", str(site))
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        (sandbox.home / ".heron").mkdir()
        target = {"url": f"http://127.0.0.1:{server.server_port}/heron", "headers": {"Authorization": "Bearer x"}}
        (sandbox.home / ".heron" / "webhook.json").write_text(json.dumps(target))
        yield server
        server.closing.set()
        server.shutdown()
        thread.join(10)


@pytest.mark.guarantee
def test_events_of_every_process_are_posted(sandbox: Sandbox, listener: Listener) -> None:
    """The command, the topology manager and the executors each post their own events, deaths included.

    Guarantee: observers receive the events of every process.
    """
    run = sandbox.start("steady.py")
    run.until(lambda: "plan_changed" in listener.events(), "the topology manager's first plan is posted")
    run.until(lambda: len(listener.events().get("container_started", ())) >= 2, "containers have started")
    run.the("stmgr", "/c1/").kill()
    run.until(lambda: "process_died" in listener.events(), "the death is posted")
    run.process.terminate()
    run.wait()
    events = listener.events()
    (submitted,), (ended,) = events["topology_submitted"], events["topology_ended"]
    assert submitted["topology_id"] == ended["topology_id"]
    assert ended["state"] == "killed"
    (died,) = events["process_died"]
    assert (died["process"], died["container_id"]) == ("stmgr", 1)
    assert [each["version"] for each in events["plan_changed"]] == list(range(1, len(events["plan_changed"]) + 1))
    assert listener.tokens == {"Bearer x"}


def test_a_hanging_service_delays_nothing(sandbox: Sandbox, listener: Listener) -> None:
    """The run ends as without the observer; the log names the observer and the failed event."""
    listener.hangs.set()
    run = sandbox.run("counting.py")
    run.finished()
    assert listener.posted
    assert run.process.returncode == 0


def test_an_observer_without_its_settings_is_named(sandbox: Sandbox, listener: Listener) -> None:
    """Nothing is posted, the topology runs, and `heron plugins check` names the missing settings."""
    (sandbox.home / ".heron" / "webhook.json").unlink()
    run = sandbox.run("counting.py")
    run.finished()
    assert listener.posted == []
    assert "observer left out: observer 'heron_observer_webhook.observer:Webhook'" in sandbox.log_text("*.log")
    assert "webhook.json" in sandbox.log_text("*.log")
