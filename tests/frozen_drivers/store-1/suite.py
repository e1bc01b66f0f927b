"""The contract of stores of views, kept by the driver ``files``."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_store_files import FileViewStore
from heron_testing.contracts.store import ViewStoreContract


class TestFileViewStore(ViewStoreContract):
    name = "files"
    driver_class = FileViewStore

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": str(tmp_path / "views")}
