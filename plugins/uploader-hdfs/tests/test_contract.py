"""The uploader contract on a real HDFS."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from hdfs import InsecureClient

from heron.testing.contracts.uploader import UploaderContract
from heron.testing.faults import Faults, relay_faults
from heron.testing.relay import Relay
from heron.testing.servers.hdfs import HdfsServer
from heron_uploader_hdfs.driver import HdfsUploader


class TestHdfsUploader(UploaderContract):
    name = "hdfs"
    driver_class = HdfsUploader

    @pytest.fixture
    def relay(self, hdfs: HdfsServer) -> Iterator[Relay]:
        """What stands between the driver and the name node."""
        relay = Relay(hdfs.address)
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, hdfs: HdfsServer, relay: Relay) -> dict[str, object]:
        """A folder for each test, of a user who has no other rights."""
        self.hdfs = InsecureClient(hdfs.url, user="heron")
        folder = f"/{secrets.token_hex(8)}"
        hdfs.make_folder(folder, owner="heron")
        host, port = relay.address
        return {"url": f"http://{host}:{port}", "root": f"{folder}/packages", "user": "heron"}

    def damage(self, uri: str) -> None:
        path = uri.removeprefix("hdfs://")
        with self.hdfs.read(path) as file:
            content = file.read()
        self.hdfs.write(path, data=b"X" + content[1:], overwrite=True)
