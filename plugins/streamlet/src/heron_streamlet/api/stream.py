"""What streams of records and streams of columns have in common: an operator with a name and a number of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from heron.api.component_spec import MOST_TASKS
from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import TopologyError
from heron_streamlet.api.checked_operators import called, rule, write
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.plan.graph import Input
from heron_streamlet.plan.operators import Consume, Operator

__all__ = ["Draft", "Stream"]

T = TypeVar("T")


class Drafts(Protocol):
    """Where the operators of a pipeline are added: `heron_streamlet.api.builder.Builder`."""

    def add(self, draft: Draft) -> Draft:
        """Add an operator, which gets its number and place."""
        ...


@dataclass(slots=True)
class Draft:
    """An operator of a pipeline that is not complete yet. Authors do not use it."""

    builder: Drafts
    operator: Operator
    inputs: tuple[Input, ...]
    columns: bool = False
    word: str = ""
    name: str = ""
    partitions: int | None = None
    on_error: str = ""
    number: int = -1
    place: str = ""


class Stream(Generic[T]):
    """A stream of a pipeline. `elements` says what it consists of."""

    elements = "records"

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._output = Input(draft.number)

    def set_name(self, name: str) -> Self:
        """Name the operator. Its name is part of checkpoints and metrics; return this stream.

        Raises:
            TopologyError: when the name is empty, not a string, or has a slash or dot.
        """
        if not is_a(name, str) or not name or set(name) & set("/."):
            msg = f"name {short_text(name, 60)} is not a text with at least one character and without slash and dot"
            raise TopologyError(msg)
        self._draft.name = name
        return self

    def get_name(self) -> str:
        """Return the name that was set; empty if the name will be made."""
        return self._draft.name

    def set_num_partitions(self, num_partitions: int) -> Self:
        """Set the number of tasks of the operator; without it the operator has that of its (left) input.

        Raises:
            TopologyError: when the number is not an integer of at least 1.
        """
        if type(num_partitions) is not int or not 1 <= num_partitions <= MOST_TASKS:
            msg = f"{short_text(num_partitions, 60)} partitions: not an integer of at least 1 and at most {MOST_TASKS}"
            raise TopologyError(msg)
        self._draft.partitions = num_partitions
        return self

    def get_num_partitions(self) -> int:
        """Return the number of tasks that was set; 0 if the operator has that of its input."""
        return self._draft.partitions or 0

    def on_error(self, found: str) -> Self:
        """Say what becomes of a record that fails in the operator; return this stream.

        Without it `topology.on.error` decides. A rule holds on every engine and with every delivery; the metric
        ``failed`` counts the record in any case.

        Args:
            found: ``skip`` loses the record, and goes on also where `topology.on.error` is ``stop``; ``stop`` ends the
                run with the error; ``dead_letter`` keeps the record among the dead letters, and goes on.

        Raises:
            TopologyError: when it is none of these, or no function of yours runs in the operator.
        """
        self._draft.on_error = rule(found, self._draft.operator)
        return self

    def consume(self, function: Callable[[T], object], *, on_error: str | None = None) -> None:
        """Call a function with each element, for its effect.

        Raises:
            TopologyError: when `on_error` is not one of the rules of the method `on_error`.
        """
        self._end(Consume(called(function, "consume")), on_error)

    def to_sink(self, sink: Sink[T], *, on_error: str | None = None) -> None:
        """Write each element to a sink.

        Raises:
            TopologyError: when `sink` is not a `Sink`, or `on_error` not one of the rules of the method `on_error`.
        """
        self._end(write(sink), on_error)

    def _end(self, operator: Operator, on_error: str | None) -> None:
        chosen = "" if on_error is None else rule(on_error, operator)
        self._add(operator).on_error = chosen

    def _add(
        self, operator: Operator, *others: Stream[Any], columns: bool = False, partitions: int | None = None
    ) -> Draft:
        """Add an operator that reads this stream and `others`; with `columns` its results are batches."""
        builder = self._draft.builder
        for other in others:
            if not is_a(other, Stream) or other.elements != self.elements:
                has = f" of {other.elements}" if is_a(other, Stream) else ""
                msg = (
                    f"{operator.word}: {short_text(other, 60)}{has} is not a stream of {self.elements}, as the left one"
                )
                raise TopologyError(msg)
            if other._draft.builder is not builder:
                msg = f"{operator.word}: the streams belong to two builders; add both sources to the same one"
                raise TopologyError(msg)
        inputs = (self._output, *(other._output for other in others))
        return builder.add(Draft(builder, operator, inputs, columns, word=operator.word, partitions=partitions))

    def _read(self, output: str, operator: Operator, word: str, *, columns: bool = False) -> Draft:
        """Add an operator that reads another output of the operator of this stream."""
        builder = self._draft.builder
        return builder.add(Draft(builder, operator, (Input(self._draft.number, output),), columns, word=word))
