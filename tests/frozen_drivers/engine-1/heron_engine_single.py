"""The engine ``single``: a pipeline as a topology in which each source is read to its end, in one container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.api import TopologyBuilder, api_constants
from heron.errors import TopologyError
from heron.spi.driver import NoOptions
from heron.spi.engine import PipelineEngine
from heron.spi.options import decode_options
from heron_streamlet.graph import Graph
from heron_streamlet.operators import Read
from heron_streamlet.topology_compiler import compile_topology


class SingleEngine(PipelineEngine):
    """For pipelines over data that is complete."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decode_options(options, NoOptions, "engine")
        return cls()

    def compile(self, name: str, pipeline: object, config: Mapping[str, object]) -> TopologyBuilder:
        if not isinstance(pipeline, Graph):
            raise TopologyError(f"topology {name!r}: {type(pipeline).__name__} is not a graph of heron_streamlet")
        for node in pipeline.nodes:
            if isinstance(node.operator, Read) and not node.operator.source.bounded:
                raise TopologyError(f"operator {node}: engine 'single' reads to the end, and this source has no end")
        return compile_topology(name, pipeline, {**config, api_constants.TOPOLOGY_STMGRS: 1})
