"""The HDFS of the tests is a real one with permissions, and survives kills."""

from __future__ import annotations

import urllib.request

import pytest

from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.server_process import ServerError


def test_written_data_survives_kill_9(hdfs: HdfsServer) -> None:
    """A test may kill the servers and continue with the same data at the same address."""
    hdfs.make_folder("/outlives/it", owner="somebody")
    hdfs.kill()
    hdfs.start()
    status = f"{hdfs.url}/webhdfs/v1/outlives/it?op=GETFILESTATUS&user.name=somebody"
    with urllib.request.urlopen(status, timeout=10) as answer:  # noqa: S310  # the URL is the fixture's own
        assert b'"owner":"somebody"' in answer.read()


def test_a_refused_administrator_sees_the_reason(hdfs: HdfsServer) -> None:
    """An error in the preparation of a test should not look like a failure of the driver."""
    with pytest.raises(ServerError, match=r"SETOWNER /no-such-place.*FileNotFoundException"):
        hdfs.ask("PUT", "/no-such-place", "SETOWNER", owner="somebody")
