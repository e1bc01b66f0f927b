"""The HDFS that tests are given is a real one, with rights, and survives what tests do to it."""

from __future__ import annotations

import urllib.request

import pytest

from servers.hdfs import HdfsServer
from servers.server_process import ServerError


def test_written_data_survives_kill_9(hdfs: HdfsServer) -> None:
    """A test may take the servers away in the middle and go on with the same data, at the same address."""
    hdfs.make_folder("/outlives/it", owner="somebody")
    hdfs.kill()
    hdfs.start()
    status = f"{hdfs.url}/webhdfs/v1/outlives/it?op=GETFILESTATUS&user.name=somebody"
    with urllib.request.urlopen(status, timeout=10) as answer:  # noqa: S310  # the URL is the fixture's own
        assert b'"owner":"somebody"' in answer.read()


def test_a_refused_administrator_sees_the_reason(hdfs: HdfsServer) -> None:
    """A test that sets the stage wrongly should not look like a driver's failure."""
    with pytest.raises(ServerError, match=r"SETOWNER /no-such-place.*FileNotFoundException"):
        hdfs.ask("PUT", "/no-such-place", "SETOWNER", owner="somebody")
