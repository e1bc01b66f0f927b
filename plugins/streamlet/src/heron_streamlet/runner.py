"""Hands a pipeline to the command that runs the file."""

from __future__ import annotations

from heron.driver_kit.loading import open_driver
from heron.spi.engine import PipelineEngine, chosen_engine
from heron_streamlet.builder import Builder
from heron_streamlet.config import Config
from heron_streamlet.topology_compiler import compile_topology

__all__ = ["Runner"]


class Runner:
    """Runs pipelines, as in heronpy."""

    def run(self, name: str, config: Config, builder: Builder) -> None:
        """Submit the pipeline to the `heron` command that runs this file, for the engine of the command's profile.

        Raises:
            TopologyError: when the pipeline is wrong, or the engine cannot run it; the message names operator and line.
            ConfigError: when the configuration is wrong.
            UsageError: when Python itself runs the file.
        """
        graph, values = builder.graph(), config.values()
        if (chosen := chosen_engine()) is not None:
            open_driver(chosen, PipelineEngine).compile(name, graph, values).build_and_submit()
        else:
            compile_topology(name, graph, values).build_and_submit()
