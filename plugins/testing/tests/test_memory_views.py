"""The store of views in memory keeps the contract, as the model of the suite must."""

from __future__ import annotations

import pytest

from heron_testing.contracts.store import ViewStoreCases
from heron_testing.memory_views import MemoryViewStore


class TestMemoryViews(ViewStoreCases):
    @pytest.fixture
    def store(self) -> MemoryViewStore:
        return MemoryViewStore()
