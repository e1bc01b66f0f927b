"""Hands a pipeline to the command that runs the file."""

from __future__ import annotations

from heron_streamlet.builder import Builder
from heron_streamlet.config import Config
from heron_streamlet.topology_compiler import compile_topology

__all__ = ["Runner"]


class Runner:
    """Runs pipelines, as in heronpy."""

    def run(self, name: str, config: Config, builder: Builder) -> None:
        """Submit the pipeline to the `heron` command that runs this file.

        Raises:
            TopologyError: when the pipeline is wrong; the message names operator and line.
            ConfigError: when the configuration is wrong.
            UsageError: when Python itself runs the file.
        """
        compile_topology(name, builder.graph(), config.values()).build_and_submit()
