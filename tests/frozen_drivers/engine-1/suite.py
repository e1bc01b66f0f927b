"""The contract of engines, kept by the driver ``single``."""

from __future__ import annotations

from heron_engine_single import SingleEngine
from heron_testing.contracts.engine import PipelineEngineContract


class TestSingleEngine(PipelineEngineContract):
    name = "single"
    driver_class = SingleEngine
