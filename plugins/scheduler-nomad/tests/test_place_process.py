"""A task fetches its own launch file through the socket of its agent, once."""

from __future__ import annotations

import json
import socketserver
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_nomad.job_spec import launch_items
from heron_scheduler_nomad.place_process import fetch_launch_file

_PATH = "/v1/var/nomad/jobs/heron-t/container-1/heron?namespace=own"


class _Agent(BaseHTTPRequestHandler):
    """Answers one variable, to one token."""

    def do_GET(self) -> None:
        known = self.path == _PATH and self.headers["X-Nomad-Token"] == "task-token"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"Items": dict(launch_items(b"\0launch\xff"))} if known else {}).encode())

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *args: object) -> None:
        del args


@pytest.fixture
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("s")
    with socketserver.UnixStreamServer(str(folder / "api.sock"), _Agent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def _environment(secrets: Path, group: str = "container-1") -> dict[str, str]:
    names = {"JOB_ID": "heron-t", "GROUP_NAME": group, "TASK_NAME": "heron", "NAMESPACE": "own"}
    return {"NOMAD_SECRETS_DIR": str(secrets), **{f"NOMAD_{key}": value for key, value in names.items()}}


def test_the_launch_file_is_private_and_fetched_once(secrets: Path) -> None:
    """A task that is started again needs no server: Nomad's may be away."""
    path = fetch_launch_file(_environment(secrets), "task-token")
    assert path.read_bytes() == b"\0launch\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (secrets / "api.sock").unlink()
    assert fetch_launch_file(_environment(secrets), "") == path


def test_a_task_without_a_launch_file_says_so(secrets: Path) -> None:
    """The topology was killed while the task was being started."""
    with pytest.raises(SchedulerError, match="container-9/heron does not exist"):
        fetch_launch_file(_environment(secrets, "container-9"), "task-token")
    assert not (secrets / "launch").exists()
