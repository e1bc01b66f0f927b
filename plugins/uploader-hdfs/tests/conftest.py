"""Uploaders on a separate folder for each test, in a real HDFS."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron_hdfs_kit.web_hdfs import Entry, WebHdfs
from heron_testing.relay import Relay
from heron_testing_servers.hdfs import HdfsServer
from heron_uploader_hdfs.driver import ERRORS, HdfsUploader

Opener = Callable[..., HdfsUploader]


@pytest.fixture
def relay(hdfs: HdfsServer) -> Iterator[Relay]:
    """Connects the driver to the name node, and can cut the connections."""
    relay = Relay(hdfs.address)
    yield relay
    relay.close()


@pytest.fixture
def options(hdfs: HdfsServer, relay: Relay) -> dict[str, object]:
    """Options for a new folder that belongs to a user without other rights."""
    folder = f"/{secrets.token_hex(8)}"
    hdfs.make_folder(folder, owner="heron")
    host, port = relay.address
    return {"url": f"http://{host}:{port}", "root": f"{folder}/packages", "user": "heron", "part_bytes": 2**20}


@pytest.fixture
def opened(options: dict[str, object]) -> Opener:
    """Opens uploaders of the same folder; arguments replace options."""
    return lambda **others: HdfsUploader.open({**options, **others})


@pytest.fixture
def web(hdfs: HdfsServer) -> Iterator[WebHdfs]:
    """HDFS as the user of the packages sees it, without a relay."""
    with WebHdfs(hdfs.url, "heron", "", ERRORS) as web:
        web.limit(600.0)  # tests may wait long between two calls
        yield web


@pytest.fixture
def stored(web: WebHdfs, options: dict[str, object]) -> Callable[[], dict[str, Entry]]:
    """Lists the folder of the packages by name."""
    return lambda: {each.name: each for each in web.entries(str(options["root"]))}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of three parts and a half."""
    path = tmp_path / "package"
    path.write_bytes(bytes(range(256)) * (14 * 1024))
    return path
