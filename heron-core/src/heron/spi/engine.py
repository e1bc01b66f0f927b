"""Contract of the engine family, which turns pipelines into topologies.

A pipeline names no engine and no store: the profile does. The process that loads the author's file asks for them
(`pipeline_choices`) when the pipeline is handed in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heron.api import TopologyBuilder
from heron.spi.driver import Driver, DriverRef

__all__ = [
    "CAPABILITIES",
    "OLDEST_SPI_VERSION",
    "PIPELINE_KEY",
    "SPI_VERSION",
    "PipelineChoices",
    "PipelineEngine",
    "offer_pipeline_choices",
    "pipeline_choices",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"live"})
"""``live``: sources may be without end. An engine without this flag refuses such pipelines."""

PIPELINE_KEY = "heron.pipeline"
"""The key of a topology's configuration with its pipeline as text, for `heron plan`: ``{"operators": [line, ...],
"stages": [line, ...]}``, as the author wrote it and as it runs."""


@dataclass(frozen=True, slots=True)
class PipelineChoices:
    """What a profile chooses for pipelines.

    Attributes:
        engine: what runs them; None is Heron itself.
        store: where their views are kept (`heron.spi.store`); None if the profile names none. Its options have no
            secrets, because they travel with the topology.
    """

    engine: DriverRef | None = None
    store: DriverRef | None = None


_offers: list[Callable[[], PipelineChoices]] = []


class PipelineEngine(Driver):
    """Compiles pipelines. It has no other work: what it returns is a topology, which runs as any other.

    All engines give equal results for a pipeline that they accept.
    """

    @abstractmethod
    def compile(self, name: str, pipeline: object, config: Mapping[str, object]) -> TopologyBuilder:
        """Return the topology that runs a pipeline. Starts nothing and asks no server.

        Args:
            name: the name of the topology.
            pipeline: a `heron_streamlet.plan.graph.Graph`; its operators and functions are the author's.
            config: the keys of the topology, `api_constants` and the author's own. The topology has those that concern
                the author's code, and `PIPELINE_KEY`.

        Raises:
            TopologyError: when the engine cannot run an operator, a source or a function; names the operator with its
                line, the engine and the reason. Also when `pipeline` is not a graph.
            ConfigError: when a key of the configuration is wrong.
        """


def pipeline_choices() -> PipelineChoices:
    """The choices for the pipeline that is handed in now: Heron and no store, where no command offers any."""
    return _offers[-1]() if _offers else PipelineChoices()


def offer_pipeline_choices(offer: Callable[[], PipelineChoices]) -> None:
    """Set what `pipeline_choices` calls in this process; it may wait until the command has read its profile."""
    _offers.append(offer)
