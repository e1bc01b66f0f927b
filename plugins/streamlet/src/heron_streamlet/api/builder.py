"""Collects the operators of a pipeline while its author writes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from heron_streamlet.api.stream import Draft
from heron_streamlet.api.streamlet import ColumnStreamlet, Streamlet, column_operators
from heron_streamlet.connectors.sources import Generator, Source, as_source
from heron_streamlet.plan.graph import Graph, Node, checked_graph
from heron_streamlet.plan.operators import AssignEventTime, Read, Windowed

__all__ = ["Builder"]

T = TypeVar("T")


class Builder:
    """A pipeline under construction.

    builder = Builder()
    builder.new_source(TextFiles("logs/*.txt")).flat_map(str.split).map(str.lower).log()
    Runner().run("words", Config(), builder)
    """

    def __init__(self) -> None:
        self._drafts: list[Draft] = []

    def new_source(self, source: Source[T] | Generator[T] | Callable[[], T | None]) -> Streamlet[T]:
        """Begin a stream.

        Args:
            source: a `Source`, a `Generator`, or a function that is called for each element (None: no element now).

        Raises:
            TopologyError: when `source` is none of these.
        """
        found = as_source(source)
        draft = Draft(self, Read(found), (), word=found.word)
        return Streamlet(self.add(draft))

    def new_columns(self, source: Source[Any] | Generator[Any] | Callable[[], Any]) -> ColumnStreamlet:
        """Begin a stream of columns.

        Args:
            source: as for `new_source`; each element is a `pyarrow.RecordBatch`, a Table, or a mapping of names to
                arrays. `heron_streamlet.columns` has sources.

        Raises:
            TopologyError: when `source` is no source.
            UsageError: when pyarrow is not installed.
        """
        read = column_operators().read(source)
        return ColumnStreamlet(self.add(Draft(self, read, (), columns=True, word=read.source.word)))

    def add(self, draft: Draft) -> Draft:
        """Add an operator; `Streamlet` calls this."""
        draft.place = _author_line()
        draft.number = len(self._drafts)
        self._drafts.append(draft)
        return draft

    def graph(self) -> Graph:
        """Return the pipeline as plain values.

        Raises:
            TopologyError: when the operators do not make a pipeline; the message names operator and line.
        """
        nodes: list[Node] = []
        names = _default_names(self._drafts)
        for draft, name in zip(self._drafts, names, strict=True):
            inputs = [nodes[each.node] for each in draft.inputs]
            partitions = draft.partitions or (inputs[0].partitions if inputs else 1)
            nodes.append(
                Node(
                    draft.number,
                    name,
                    draft.operator,
                    draft.inputs,
                    partitions,
                    draft.place,
                    _is_timed(draft, inputs),
                    draft.columns,
                    draft.on_error,
                )
            )
        return checked_graph(nodes)


def _is_timed(draft: Draft, inputs: list[Node]) -> bool:
    operator = draft.operator
    if isinstance(operator, AssignEventTime):
        return True
    clock = isinstance(operator, Windowed) and operator.window.clock
    return bool(inputs) and inputs[0].timed and not clock


def _default_names(drafts: list[Draft]) -> list[str]:
    """The names of authors, and ``WORD-N`` for operators without a name, as in heronpy."""
    taken = {draft.name for draft in drafts if draft.name}
    names = []
    for draft in drafts:
        name, number = draft.name, 1
        while not name:
            candidate = f"{draft.word}-{number}"
            if candidate not in taken:
                name = candidate
                taken.add(name)
            number += 1
        names.append(name)
    return names


def _author_line() -> str:
    """File and line of the innermost frame outside this package."""
    frame, package = sys._getframe(1), str(Path(__file__).parents[1])  # the documented way to a caller
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
