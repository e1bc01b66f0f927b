"""Whether a standalone master is of the Spark that the command has, as far as its page says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pyspark.version import __version__

from heron.errors import SchedulerError
from heron_scheduler_spark.master import parse_master
from heron_scheduler_spark.master_version import check_version
from heron_scheduler_spark.options import SparkOptions

MASTER = parse_master("spark://127.0.0.1:7077")


class Page(BaseHTTPRequestHandler):
    """Shows what the server has."""

    def do_GET(self) -> None:
        """Any path."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(getattr(self.server, "shown", "")).encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A page at a port of its own."""
    with HTTPServer(("127.0.0.1", 0), Page) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def options(port: int) -> SparkOptions:
    return SparkOptions(conf={"spark.master.ui.port": str(port)})


def test_another_major_version_is_refused_with_both(server: HTTPServer) -> None:
    """An application would never hear of it: Spark tries for a minute, and says that the masters are silent."""
    server.shown = '<span class="version" style="">3.5.6</span></a>\n Spark Master at spark://h:7077'  # type: ignore[attr-defined]
    with pytest.raises(SchedulerError, match=rf"at 127\.0\.0\.1 is of version 3\.5\.6, .* pyspark {__version__}"):
        check_version(options(server.server_port), MASTER, 5.0)


@pytest.mark.parametrize(
    "shown", [f'<span class="version me-3">{__version__}</span> Spark Master at spark://h:7077', "<h1>3.5.6</h1>", ""]
)
def test_what_is_no_other_version_is_not_refused(server: HTTPServer, shown: str) -> None:
    """The same one, or a page of something else."""
    server.shown = shown  # type: ignore[attr-defined]
    check_version(options(server.server_port), MASTER, 5.0)


def test_a_page_that_is_not_there_says_nothing() -> None:
    """It is at another port, or shown to nobody."""
    check_version(options(9), MASTER, 5.0)
    check_version(SparkOptions(), parse_master("local"), 5.0)
