"""A task takes its launch file from a variable that no process of the container sees afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from heron_scheduler_ecs.task_process import address_of

_MODULE = "heron_scheduler_ecs.task_process"


class _Agent(BaseHTTPRequestHandler):
    """The metadata of a container, as the agent of ECS has them (version 4)."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        network = {"NetworkMode": "awsvpc", "IPv4Addresses": ["10.0.2.106"]}
        self.wfile.write(json.dumps({"Name": "heron", "Networks": [network]}).encode())

    def log_message(self, *args: object) -> None:
        del args


@pytest.fixture
def agent() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Agent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v4/abc"
        server.shutdown()
        thread.join()


def test_the_address_is_that_of_the_task(agent: str) -> None:
    """Stream managers of other tasks connect to it. Without an agent, the profile decides."""
    assert address_of({"ECS_CONTAINER_METADATA_URI_V4": agent}) == "10.0.2.106"
    assert address_of({}) == ""


def test_a_process_without_the_variable_says_who_starts_it() -> None:
    """A person may run the image by hand."""
    environment = {key: value for key, value in os.environ.items() if key != "HERON_LAUNCH"}
    ended = subprocess.run(
        [sys.executable, "-P", "-m", _MODULE], env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "HERON_LAUNCH is missing" in ended.stderr
