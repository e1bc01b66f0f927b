"""Checks of a master before a JVM starts: its address, and the version on its page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pyspark.version import __version__

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.master import parse_master
from heron_scheduler_spark.settings.master_check import check_master, check_version
from heron_scheduler_spark.settings.options import SparkOptions

MASTER = parse_master("spark://127.0.0.1:7077")


class Page(BaseHTTPRequestHandler):
    """Shows the text of the server."""

    def do_GET(self) -> None:
        """Answer any path."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(getattr(self.server, "shown", "")).encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A page at a free port."""
    with HTTPServer(("127.0.0.1", 0), Page) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def options(port: int) -> SparkOptions:
    return SparkOptions(conf={"spark.master.ui.port": str(port)})


def test_an_absent_master_is_named_with_the_reason() -> None:
    """A JVM would try for a minute."""
    with pytest.raises(SchedulerError, match=r"127\.0\.0\.1:9: Connection refused.*scheduler\.master"):
        check_master(parse_master("spark://127.0.0.1:9"), 1.0)


def test_another_major_version_is_refused_with_both_versions(server: HTTPServer) -> None:
    """Spark itself tries for a minute, and then reports that the masters are silent."""
    server.shown = '<span class="version" style="">3.5.6</span></a>\n Spark Master at spark://h:7077'  # type: ignore[attr-defined]
    with pytest.raises(SchedulerError, match=rf"at 127\.0\.0\.1 is of version 3\.5\.6, .* pyspark {__version__}"):
        check_version(options(server.server_port), MASTER, 5.0)


@pytest.mark.parametrize(
    "shown", [f'<span class="version me-3">{__version__}</span> Spark Master at spark://h:7077', "<h1>3.5.6</h1>", ""]
)
def test_the_same_version_or_another_page_is_accepted(server: HTTPServer, shown: str) -> None:
    """Another program may have that port."""
    server.shown = shown  # type: ignore[attr-defined]
    check_version(options(server.server_port), MASTER, 5.0)


def test_an_absent_page_is_accepted() -> None:
    """It may be at another port, or turned off."""
    check_version(options(9), MASTER, 5.0)
    check_version(SparkOptions(), parse_master("local"), 5.0)
