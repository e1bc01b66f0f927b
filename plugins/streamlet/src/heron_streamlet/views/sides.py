"""The two sides of a pipeline with views: what runs live, and what a batch runs over history."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from heron.api import TopologyReliabilityMode, api_constants
from heron.clock import wall_s
from heron.errors import ConfigError, TopologyError
from heron.spi.driver import DriverRef
from heron.spi.store import Batch
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.connectors.sources import Generator, Reader, Source, as_source
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.plan.graph import Graph, Node
from heron_streamlet.plan.operators import Operator, Read, Windowed, Write
from heron_streamlet.views.view import View, ViewTarget
from heron_streamlet.views.view_folds import HistoryFold
from heron_streamlet.views.view_sinks import HistorySink, LiveSink
from heron_streamlet.windowing.event_time import event_time_us
from heron_streamlet.windowing.keyed_operators import WindowFold

__all__ = ["HistoryAndLive", "HistorySide", "LiveSide", "Side", "for_side", "this_epoch"]

T = TypeVar("T")

_EPOCHS_BEGIN_S = 1_577_836_800  # 2020-01-01
_CLOCKS_DIFFER_S = 60.0
_NEVER_CLOSED_US = 2**60  # of a batch: windows close at the end of the input, so nothing is late


class HistoryAndLive(Source[T]):
    """Two sources of the same elements: what was archived, and what arrives now.

    An engine that runs to the end of its input (``spark-batch``) reads `history`, every other one reads `live`.

    Args:
        history: everything before `until`, and possibly more.
        live: at least everything since the start of the span in which the newest batch ends.
        until: how far `history` is complete: a `datetime` with a time zone, or seconds since the epoch. None is the
            time at which the pipeline is handed in.

    Raises:
        TopologyError: when `live` is not a source.
        UserCodeError: when `until` is no time.
    """

    def __init__(
        self,
        history: Source[T],
        live: Source[T] | Generator[T] | Callable[[], T | None],
        *,
        until: datetime | float | None = None,
    ) -> None:
        self.history = as_source(history)
        self.live = as_source(live)
        self.until_us = None if until is None else event_time_us(until)
        self.bounded = self.live.bounded
        self.word = self.live.word

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        """`Source.open`: a side has taken its source, so nobody opens both.

        Raises:
            TypeError: always.
        """
        raise TypeError(type(self).__name__)


@dataclass(frozen=True, slots=True)
class LiveSide:
    """What runs now.

    Attributes:
        exact: whether the engine gives each element exactly once without being asked.
        epoch: from 0 to 2**28, ascending from one submission to the next: what a later one writes is newer, although
            its checkpoints are counted from 1 again.
    """

    store: DriverRef | None
    exact: bool = False
    epoch: int = 0

    def source(self, both: HistoryAndLive[Any]) -> Source[Any]:
        """The source that this side reads."""
        return both.live

    def fold(self, live: Windowed, view: View[Any, Any], until_us: int) -> Windowed:
        """The operator that folds a view; `live` is that of the author's graph."""
        del view, until_us
        return live

    def sink(self, view: View[Any, Any], until_us: int) -> Sink[Any]:
        """The sink that writes a view."""
        del until_us
        assert self.store is not None  # noqa: S101  # `for_side` has looked
        return LiveSink(view, self.store, self.epoch)


@dataclass(frozen=True, slots=True)
class HistorySide:
    """A batch over history. `run` tells it apart from other batches of the same end."""

    store: DriverRef | None
    run: str = ""

    def source(self, both: HistoryAndLive[Any]) -> Source[Any]:
        """The source that this side reads."""
        return both.history

    def fold(self, live: Windowed, view: View[Any, Any], until_us: int) -> Windowed:
        """The operator that folds a view, in which no element is late; `live` is that of the author's graph."""
        folds = live.operator
        assert isinstance(folds, WindowFold)  # noqa: S101  # `Streamlet.to_view` has made it
        window = replace(view.window(), allowed_lateness_us=_NEVER_CLOSED_US)
        return replace(live, operator=HistoryFold(window, folds.fold, until_us=until_us), window=window)

    def sink(self, view: View[Any, Any], until_us: int) -> Sink[Any]:
        """The sink that writes a view; the batch ends with the last span that is complete."""
        assert self.store is not None  # noqa: S101  # `for_side` has looked
        return HistorySink(view, self.store, Batch(until_us // view.span_us * view.span_us, self.run))


Side: TypeAlias = LiveSide | HistorySide


def this_epoch() -> int:
    """The epoch of what is submitted now: seconds since 2020."""
    return max(0, round(wall_s()) - _EPOCHS_BEGIN_S)


def for_side(graph: Graph, side: Side, config: Mapping[str, object]) -> Graph:
    """The graph that one side runs; a graph without views and without sources of both sides stays as it is.

    Raises:
        TopologyError: when a view has no store, its stream has no event time, two operators write one view, or `until`
            of the history side is in the future.
        ConfigError: when the live side has no checkpoints.
    """
    until_us = _until_us(graph)
    if isinstance(side, HistorySide):
        _check_past(graph, until_us)
        side = replace(side, run=side.run or secrets.token_hex(8))
    written = _written_views(graph)
    _check_views(graph, written, side, config)
    views = written | _folded_views(graph, written)
    nodes = tuple([_on_side(node, views.get(node.number), side, until_us) for node in graph.nodes])
    return graph if all(map(operator.is_, nodes, graph.nodes)) else Graph(nodes)


def _until_us(graph: Graph) -> int:
    """How far history is complete."""
    sources = [each.operator.source for each in graph.nodes if isinstance(each.operator, Read)]
    given = {each.until_us for each in sources if isinstance(each, HistoryAndLive) and each.until_us is not None}
    return min(given, default=round(wall_s() * 1_000_000))


def _written_views(graph: Graph) -> dict[int, View[Any, Any]]:
    """The views that nodes write, by number of the node."""
    sinks = {node.number: node.operator.sink for node in graph.nodes if isinstance(node.operator, Write)}
    return {number: sink.view for number, sink in sinks.items() if isinstance(sink, ViewTarget)}


def _folded_views(graph: Graph, written: Mapping[int, View[Any, Any]]) -> dict[int, View[Any, Any]]:
    """The views that nodes fold for the nodes that write them, by number of the node."""
    return {graph.nodes[number].inputs[0].node: view for number, view in written.items()}


def _on_side(node: Node, view: View[Any, Any] | None, side: Side, until_us: int) -> Node:
    """A node as one side runs it. `view` is the view that it folds or writes."""
    own: Operator = node.operator
    if isinstance(own, Read) and isinstance(own.source, HistoryAndLive):
        own = Read(side.source(own.source))
    elif view is not None and isinstance(own, Windowed):
        own = side.fold(own, view, until_us)
    elif view is not None:
        own = Write(side.sink(view, until_us))
    return node if own is node.operator else replace(node, operator=own)


def _check_past(graph: Graph, until_us: int) -> None:
    """A batch of the future would hide all live values until then, and correct batches would be older."""
    ahead_s = until_us / 1_000_000 - wall_s()
    if ahead_s > _CLOCKS_DIFFER_S:
        node = next(each for each in graph.nodes if isinstance(each.operator, Read))
        msg = (
            f"{node}: until={until_us / 1_000_000:.0f} s is {ahead_s:.0f} s in the future, and history is complete "
            "only up to now; correct `until`, or leave it out"
        )
        raise TopologyError(msg)


def _check_views(graph: Graph, written: Mapping[int, View[Any, Any]], side: Side, config: Mapping[str, object]) -> None:
    writers: dict[str, Node] = {}
    for number, view in written.items():
        node = graph.nodes[number]
        folded = graph.nodes[node.inputs[0].node]
        if not graph.nodes[folded.inputs[0].node].timed:
            msg = f"{node}: the view {view.name!r} divides event time, and its stream has none; call event_time"
            raise TopologyError(msg)
        if isinstance(side, LiveSide):
            _check_delivery(node, view, side, config)
        if (other := writers.setdefault(view.name, node)) is not node:
            msg = f"{node}: the view {view.name!r} is written by {other} already; give it another name"
            raise TopologyError(msg)
        if side.store is None:
            msg = (
                f"{node}: the profile names no store for the view {view.name!r}; add the section "
                "`store: {driver: sqlite}`, or another driver of the family store"
            )
            raise TopologyError(msg)


def _check_delivery(node: Node, view: View[Any, Any], side: LiveSide, config: Mapping[str, object]) -> None:
    mode = config.get(api_constants.TOPOLOGY_RELIABILITY_MODE)
    if not side.exact and mode != TopologyReliabilityMode.EFFECTIVELY_ONCE:
        msg = (
            f"{node}: the view {view.name!r} is written when a checkpoint is complete, and this topology has none; "
            "call Config().set_delivery_semantics(Config.EFFECTIVELY_ONCE)"
        )
        raise ConfigError(msg)
