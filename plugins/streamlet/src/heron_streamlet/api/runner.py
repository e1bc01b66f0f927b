"""Hands a pipeline to the command that runs the file."""

from __future__ import annotations

from heron.api.names import is_a
from heron.author_text import short_text
from heron.driver_kit.loading import open_driver
from heron.errors import TopologyError
from heron.spi.engine import PipelineEngine, pipeline_choices
from heron_streamlet.api.builder import Builder
from heron_streamlet.api.config import Config
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_streamlet.views.sides import HistorySide, LiveSide, for_side, this_epoch

__all__ = ["Runner"]


class Runner:
    """Runs pipelines, as in heronpy."""

    def run(self, name: str, config: Config, builder: Builder) -> None:
        """Submit the pipeline to the `heron` command that runs this file, for the engine of the command's profile.

        An engine that runs to the end of its input takes the history side of a pipeline with views, as a topology
        ``NAME-history``, so that both sides may run at once; every other engine takes the live side.

        Raises:
            TopologyError: when the pipeline is wrong, or the engine cannot run it; the message names operator and line.
            ConfigError: when the configuration is wrong.
            UsageError: when Python itself runs the file.
        """
        for given, kind in ((config, Config), (builder, Builder)):
            if not is_a(given, kind):
                msg = f"run: {short_text(given, 60)} is not a {kind.__name__}; give run(name, Config(), builder)"
                raise TopologyError(msg)
        graph, values = builder.graph(), config.values()
        choices = pipeline_choices()
        if choices.engine is None:
            own = for_side(graph, LiveSide(choices.store, epoch=this_epoch()), values)
            compile_topology(name, own, values).build_and_submit()
            return
        engine = open_driver(choices.engine, PipelineEngine)
        live = "live" in engine.capabilities
        side = LiveSide(choices.store, exact=True, epoch=this_epoch()) if live else HistorySide(choices.store)
        own = for_side(graph, side, values)
        engine.compile(name if live or own is graph else f"{name}-history", own, values).build_and_submit()
