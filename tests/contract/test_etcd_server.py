"""The etcd of the tests is a real server, and survives kills."""

from __future__ import annotations

import base64
import json
import urllib.request

from heron_testing_servers.etcd import EtcdServer


def ask(etcd: EtcdServer, path: str, **fields: str) -> dict[str, object]:
    """Send one request to the JSON gateway, whose texts are base64."""
    body = {name: base64.b64encode(text.encode()).decode() for name, text in fields.items()}
    with urllib.request.urlopen(f"{etcd.url}/v3/{path}", json.dumps(body).encode(), timeout=10) as answer:  # noqa: S310  # the URL is the fixture's own
        found: dict[str, object] = json.load(answer)
        return found


def test_written_data_survives_kill_9(etcd: EtcdServer) -> None:
    """A test may kill the server and continue with the same data at the same address."""
    ask(etcd, "kv/put", key="outlives", value="it")
    etcd.kill()
    etcd.start()
    assert ask(etcd, "kv/range", key="outlives")["count"] == "1"
