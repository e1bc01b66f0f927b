"""A tracker in a process, and what its API answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["TrackerProcess"]

_TLS = httpx.create_ssl_context()  # made once: httpx reads all certificates for each request without it, in 20 ms


class TrackerProcess:
    """A tracker of the sandbox, with a client of its API."""

    def __init__(self, sandbox: Sandbox, *words: str) -> None:
        self.run: HeronRun = sandbox.start_command("tracker", "--address", "127.0.0.1:0", "--period", "0.2", *words)
        self.run.printed("tracker at http://")
        (self.url,) = re.findall(r"tracker at (http://[^/]*)/", self.run.stderr)

    def ask(self, path: str) -> httpx.Response:
        """Return the answer of a path."""
        return httpx.get(f"{self.url}{path}", timeout=10.0, verify=_TLS)

    def get(self, path: str) -> Any:  # noqa: ANN401
        """Return the document of a path that has an answer."""
        response = self.ask(path)
        assert response.status_code == 200, response.text
        return response.json()

    def kinds(self, place: str) -> set[str]:
        """Return the kinds of all events of a topology."""
        return {each["kind"] for each in self.get(f"{place}/events?limit=1000")["items"]}

    def state(self, cluster: str, name: str) -> str:
        """Return the state of a topology in the list, "" when it is not there."""
        items = self.get(f"/api/v1/topologies?cluster={cluster}")["items"]
        return next((each["state"] for each in items if each["name"] == name), "")
