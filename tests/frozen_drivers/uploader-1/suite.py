"""The contract of uploaders, kept by the driver ``shelf``."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, file_faults
from heron_uploader_shelf import ShelfUploader


class TestShelfUploader(UploaderContract):
    name = "shelf"
    driver_class = ShelfUploader

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> Path:
        self.shelf = tmp_path / "shelf"
        return self.shelf

    @pytest.fixture
    def options(self, folder: Path) -> dict[str, object]:
        return {"folder": str(folder)}

    @pytest.fixture
    def faults(self, folder: Path) -> Faults:
        return file_faults(folder)

    def damage(self, uri: str) -> None:
        path = self.shelf / uri.partition(":")[2]
        path.write_bytes(b"X" + path.read_bytes()[1:])
