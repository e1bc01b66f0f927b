"""Both engines on Spark keep the contract of their family."""

from __future__ import annotations

import pytest

from heron_engine_spark.compiler import BatchEngine, StreamingEngine
from heron_testing.contracts.engine import PipelineEngineContract

pytestmark = pytest.mark.usefixtures("some_java")


class TestBatchEngine(PipelineEngineContract):
    """Spark batch."""

    name = "spark-batch"
    driver_class = BatchEngine

    @pytest.fixture
    def options(self) -> dict[str, object]:
        """A cluster that nobody asks."""
        return {"master": "spark://spark.example.org:7077"}


class TestStreamingEngine(PipelineEngineContract):
    """Structured Streaming."""

    name = "spark-streaming"
    driver_class = StreamingEngine

    @pytest.fixture
    def options(self) -> dict[str, object]:
        """A cluster that nobody asks."""
        return {"master": "spark://spark.example.org:7077", "checkpoint": "hdfs://nn:8020/words"}
