"""The uploader contract on a real HDFS."""

from __future__ import annotations

import pytest
from hdfs import InsecureClient

from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.hdfs import HdfsServer
from heron_uploader_hdfs.driver import HdfsUploader


class TestHdfsUploader(UploaderContract):
    name = "hdfs"
    driver_class = HdfsUploader

    @pytest.fixture
    def options(self, hdfs: HdfsServer, options: dict[str, object]) -> dict[str, object]:
        self.hdfs = InsecureClient(hdfs.url, user="heron")
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def damage(self, uri: str) -> None:
        path = uri.removeprefix("hdfs://")
        with self.hdfs.read(path) as file:
            content = file.read()
        self.hdfs.write(path, data=b"X" + content[1:], overwrite=True)
