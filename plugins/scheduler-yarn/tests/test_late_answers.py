"""A resource manager that is slower than the limit of a request, or refuses it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from heron.errors import SchedulerError
from heron_hdfs_kit.place import HdfsPlace
from heron_scheduler_kit.managed.rest_api import ApiError
from heron_scheduler_yarn.job_store import JobStore
from heron_scheduler_yarn.options import YarnOptions
from heron_scheduler_yarn.yarn_access import YarnAccess
from heron_scheduler_yarn.yarn_api import YarnApi
from heron_scheduler_yarn.yarn_cluster import YarnCluster


class _Manager:
    """Creates a service after the limit of the request, and answers only when the test is over; or never creates it."""

    def __init__(self, *, creates: bool = False, refuses: str = "", ends_at: int = 0) -> None:
        """An application has ended from look number `ends_at` on."""
        self.over = threading.Event()
        self.looks = 0
        self.posts: list[str] = []
        self.kills: list[str] = []
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                manager.posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["name"])
                if refuses:
                    self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"diagnostics": refuses})
                else:
                    manager.over.wait()

            def do_PUT(self) -> None:
                manager.kills.append(self.path.split("/")[-2])
                self._answer(HTTPStatus.ACCEPTED, {"state": "RUNNING"})

            def do_GET(self) -> None:
                if self.path.startswith("/app/"):
                    manager.over.wait()
                    return
                if self.path.startswith("/webhdfs/"):
                    missing = {"exception": "FileNotFoundException", "message": "File does not exist"}
                    self._answer(HTTPStatus.NOT_FOUND, {"RemoteException": missing})
                    return
                manager.looks += 1
                appeared = manager.posts if creates and manager.looks > 1 else []
                names = ["heron-words-1a"] if ends_at else appeared
                state = "RUNNING" if manager.looks < ends_at else "KILLED"
                apps = [{"name": each, "id": f"of-{each}", "state": state} for each in names]
                self._answer(HTTPStatus.OK, {"apps": {"app": apps}})

            def _answer(self, status: HTTPStatus, answer: object) -> None:
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base class
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def api(self, create_s: float = 0.3) -> YarnApi:
        """Return a client with a limit for a new service."""
        url = f"http://127.0.0.1:{self.server.server_port}"
        return YarnApi(lambda: YarnAccess((url,), HdfsPlace(url, "/heron", "ann", ""), "ann"), create_s=create_s)


@contextmanager
def _serving(manager: _Manager) -> Iterator[None]:
    thread = threading.Thread(target=manager.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        manager.over.set()
        manager.server.shutdown()
        thread.join()
        manager.server.server_close()


def test_a_service_that_appears_after_the_limit_is_created() -> None:
    """YARN goes on when its answer is late; a second request would be refused."""
    manager = _Manager(creates=True)
    with _serving(manager):
        manager.api(create_s=2.0).create({"name": "heron-words-1a"})
    assert manager.posts == ["heron-words-1a"]
    assert manager.looks > 1


def test_a_check_of_a_manager_that_has_just_started_says_its_limit() -> None:
    """The first request needs longer than others, so a check waits as long as its caller permits."""
    manager = _Manager()
    api = manager.api()
    cluster = YarnCluster(api, JobStore(lambda: api.access), YarnOptions())
    with _serving(manager), pytest.raises(SchedulerError, match=r"the limit is 0\.\d+ s; if it has just started"):
        cluster.check(0.5)


def test_a_service_that_never_appears_is_an_error() -> None:
    """The error names the resource manager, and the remedy."""
    manager = _Manager(creates=False)
    with _serving(manager), pytest.raises(SchedulerError, match=r"does not answer: .*see `yarn node -list`"):
        manager.api().create({"name": "heron-words-1a"})
    assert manager.posts == ["heron-words-1a"]


def test_a_kill_returns_when_the_application_has_ended() -> None:
    """YARN accepts a kill at once, and refuses to destroy a service whose application still runs."""
    manager = _Manager(ends_at=4)
    with _serving(manager):
        manager.api().kill("heron-words-1a")
    assert manager.kills == ["of-heron-words-1a"]
    assert manager.looks == 4


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("memory size (41088) is larger than configured max (16384)", r"\(500\); in MiB; request less"),
        ("submitted to unknown queue: nowhere", "set scheduler.queue to one that `yarn queue -list` shows"),
        ("User root does not have permission to submit app", "grant the right to submit to the queue"),
        ("what nobody has seen before", r"before \(500\)$"),
    ],
)
def test_what_yarn_refuses_has_a_remedy(said: str, remedy: str) -> None:
    """YARN answers all of them with 500, so its words tell them apart."""
    manager = _Manager(refuses=said)
    with _serving(manager), pytest.raises(ApiError, match=remedy):
        manager.api().create({"name": "heron-words-1a"})
