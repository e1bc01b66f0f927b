"""The pipelines of the connector suites. An author calls one of these functions at the end of a file.

The suite starts the file with ``heron run``, and gives it the arguments.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from heron_streamlet import Builder, Config, Reader, Runner, Sink, Source, StageContext
from heron_testing.connectors.gated_source import GatedSource
from heron_testing.connectors.records import POISON, ExactLines, Journal, record_of

__all__ = ["PARTITIONS", "READ", "WRITE", "Given", "read_source", "write_sink"]

T = TypeVar("T")

Given = Mapping[str, Any]
"""What a test gives to the program, as JSON."""

READ, WRITE = "read", "write"
"""The names of the stages; those of their components begin with them."""

PARTITIONS = 2
"""Tasks of each stage, and partitions of `write_sink`."""


def read_source(
    source_of: Callable[[Given], Source[Any]], text_of: Callable[[Any], str], *, columns: bool = False
) -> None:
    """Run the pipeline of `heron_testing.contracts.source.SourceContract`.

    Args:
        source_of: makes the source of what the test gives (`SourceFeed.given`).
        text_of: the text of an element, as it was put; with `columns`, of a row as a dictionary.
        columns: whether the elements are batches of columns.
    """
    options = _options()
    out, builder = Path(options.out), Builder()

    def number_of(element: Any) -> int:  # noqa: ANN401  # whatever the source has
        return record_of(text_of(element.slice(element.num_rows - 1).to_pylist()[0] if columns else element))[1]

    def checked(element: Any) -> str:  # noqa: ANN401  # as above
        text = text_of(element)
        if text.endswith(f" {POISON}"):
            msg = f"{text!r} is poison"
            raise ValueError(msg)
        return text

    source = GatedSource(source_of(json.loads(options.given)), number_of, out, singly=columns)
    if columns:
        elements = builder.new_columns(source).set_num_partitions(PARTITIONS).set_name(READ).rows()
    else:
        elements = builder.new_source(source).set_num_partitions(PARTITIONS).set_name(READ)
    texts = elements.map(checked).on_error("dead_letter").repartition(PARTITIONS, _task_of).set_name(WRITE)
    texts.to_sink(ExactLines(out) if options.mode == "EFFECTIVELY_ONCE" else Journal(out))
    _run("read_contract", options, builder)


def write_sink(sink_of: Callable[[Given], Sink[T]], element_of: Callable[[str], T]) -> None:
    """Run the pipeline of `heron_testing.contracts.sink.SinkContract`.

    Args:
        sink_of: makes the sink of what the test gives (`SinkTarget.given`).
        element_of: the element that stands for a text; for a text that ends with `POISON`, one that the sink refuses.
    """
    options = _options()
    out, builder = Path(options.out), Builder()
    source = GatedSource(
        _Numbers(options.records, options.poison, options.padding), lambda text: record_of(text)[1], out
    )
    texts = builder.new_source(source).set_num_partitions(PARTITIONS).set_name(READ)
    elements = texts.repartition(PARTITIONS, _task_of).set_name(WRITE).map(element_of)
    elements.to_sink(sink_of(json.loads(options.given)), on_error="dead_letter")
    _run("write_contract", options, builder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("out", "mode", "given"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--interval", type=float, default=0.0)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--poison", type=int, default=-1)
    parser.add_argument("--padding", type=int, default=0)
    return parser.parse_args()


def _run(name: str, options: argparse.Namespace, builder: Builder) -> None:
    config = Config({"topology.stateful.checkpoint.interval.seconds": options.interval} if options.interval else {})
    config.set_delivery_semantics(getattr(Config, options.mode)).set_num_containers(2)
    Runner().run(name, config, builder)


def _task_of(text: str, tasks: int) -> int:
    return record_of(text)[0] % tasks


class _Numbers(Source[str]):
    """The numbers from 0 on of each partition; one of them is poison."""

    def __init__(self, count: int, poison: int, padding: int) -> None:
        self._count, self._poison, self._padding = count, poison, padding

    def partitions(self, tasks: int) -> Sequence[str]:  # always the same
        """`Source.partitions`."""
        return [str(number) for number in range(PARTITIONS)]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[str]:
        """`Source.open`."""
        begin = position if isinstance(position, int) else 0
        behind = f" {'x' * self._padding}" if self._padding else ""
        return _NumberReader(partition, begin, self._count, self._poison, behind)


class _NumberReader:
    def __init__(self, partition: str, begin: int, count: int, poison: int, behind: str) -> None:
        self._partition, self.position, self._count = partition, begin, count
        self._poison, self._behind = poison, behind

    def read(self, limit: int) -> Sequence[str] | None:
        """`Reader.read`."""
        numbers = range(self.position, min(self.position + limit, self._count))
        self.position = numbers.stop
        poison, behind = f" {POISON}", self._behind
        return [f"{self._partition} {each}{poison if each == self._poison else behind}" for each in numbers] or None

    def close(self) -> None:
        """`Reader.close`."""
