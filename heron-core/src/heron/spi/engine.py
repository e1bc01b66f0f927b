"""Contract of the engine family, which turns pipelines into topologies.

A pipeline names no engine: the profile does. The process that loads the author's file asks for it (`chosen_engine`)
when the pipeline is handed in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from heron.api import TopologyBuilder
from heron.spi.driver import Driver, DriverRef

__all__ = [
    "CAPABILITIES",
    "OLDEST_SPI_VERSION",
    "PIPELINE_KEY",
    "SPI_VERSION",
    "PipelineEngine",
    "chosen_engine",
    "offer_engine",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"live"})
"""``live``: sources may be without end. An engine without this flag refuses such pipelines."""

PIPELINE_KEY = "heron.pipeline"
"""The key of a topology's configuration with its pipeline as text, for `heron plan`: ``{"operators": [line, ...],
"stages": [line, ...]}``, as the author wrote it and as it runs."""

_Offer = Callable[[], DriverRef | None]
_offers: list[_Offer] = []


class PipelineEngine(Driver):
    """Compiles pipelines. It has no other work: what it returns is a topology, which runs as any other.

    All engines give equal results for a pipeline that they accept.
    """

    @abstractmethod
    def compile(self, name: str, pipeline: object, config: Mapping[str, object]) -> TopologyBuilder:
        """Return the topology that runs a pipeline. Starts nothing and asks no server.

        Args:
            name: the name of the topology.
            pipeline: a `heron_streamlet.graph.Graph`; its operators and functions are the author's.
            config: the keys of the topology, `api_constants` and the author's own. The topology has those that concern
                the author's code, and `PIPELINE_KEY`.

        Raises:
            TopologyError: when the engine cannot run an operator, a source or a function; names the operator with its
                line, the engine and the reason. Also when `pipeline` is not a graph.
            ConfigError: when a key of the configuration is wrong.
        """


def chosen_engine() -> DriverRef | None:
    """The engine for the pipeline that is handed in now; None for Heron itself, also where no command asks."""
    return _offers[-1]() if _offers else None


def offer_engine(offer: Callable[[], DriverRef | None]) -> None:
    """Set what `chosen_engine` calls in this process; it may wait until the command has read its profile."""
    _offers.append(offer)
