"""Random pipelines that each process draws from the same number, so that all engines run the same ones.

If 3 divides the number, it is a pipeline of columns, with the branches of `column_chains`. The others are
chains of up to five operators on records.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from heron_streamlet import Builder, Generator, Source, Streamlet, TextFolder
from heron_streamlet.api.stream import Draft
from heron_streamlet.api.streamlet import WindowedStreamlet
from heron_streamlet.columns import ColumnStreamlet
from heron_streamlet.plan.operators import Write
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.column_chains import COLUMN_STEPS, SCHEMA, WINDOWS, in_batches, on_columns, on_records
from heron_testing.pipelines.random_chains import KEYS, STATEFUL, STATELESS, Partitions, chained, timed_source
from heron_testing.pipelines.reference_engine import results_of
from heron_testing.pipelines.simulated_runs import run_simulated

__all__ = ["ChainBuilder", "add_chain", "described", "expected_lines", "simulated_lines", "written_lines"]

T = TypeVar("T")


class ChainBuilder(Builder):
    """A builder whose collections are folders, and whose sources may wait in their middle.

    Args:
        out: the folder of the folders, ``NUMBER-COLLECTION``.
        breaks: as of `Partitions`.
        gate: as of `Partitions`.
    """

    def __init__(self, out: Path, *, breaks: bool, gate: Path | None) -> None:
        super().__init__()
        self.out = out
        self.breaks = breaks
        self.gate = gate
        self.number = 0

    def new_source(self, source: Source[T] | Generator[T] | Callable[[], T | None]) -> Streamlet[T]:
        """Add a source that may wait in its middle."""
        return super().new_source(self._halting(source))

    def new_columns(self, source: Any) -> ColumnStreamlet:  # noqa: ANN401  # as in the base class
        """Add a source of columns that may wait in its middle."""
        return super().new_columns(self._halting(source))

    def add(self, draft: Draft) -> Draft:
        """Add an operator; a collection becomes a folder."""
        if isinstance(draft.operator, Write) and isinstance(draft.operator.sink, Collect):
            draft.operator = Write(TextFolder(self.out / f"{self.number}-{draft.operator.sink.name}"))
        return super().add(draft)

    def _halting(self, source: Any) -> Any:  # noqa: ANN401
        assert isinstance(source, Partitions)
        return Partitions(source.lists, 5, breaks=self.breaks, gate=self.gate)


def add_chain(builder: Builder, number: int) -> None:
    """Add the pipeline of a number, into collections."""
    chance = random.Random(number)
    if number % 3 == 0:
        tables, cuts, arguments = _columns(chance)
        on_columns(builder, [in_batches(each, cuts) for each in tables], *arguments)
        return
    inputs, steps, lag, tasks = _records(chance)
    stream: Any = chained(timed_source(builder, inputs, lag, tasks), steps)
    stream.to_sink(Collect("results"))
    if isinstance(stream, WindowedStreamlet):
        stream.late.to_sink(Collect("late"))


def described(number: int) -> str:
    """The pipeline of a number in words, for the message of a failure."""
    chance = random.Random(number)
    return f"pipeline {number}: {_columns(chance)[2] if number % 3 == 0 else _records(chance)[1:]}"


def expected_lines(number: int) -> Counter[str]:
    """What the folders of a pipeline have in the end, by its meaning: ``COLLECTION ELEMENT``."""
    builder = Builder()
    if number % 3 == 0:
        tables, _, arguments = _columns(random.Random(number))
        on_records(builder, tables, *arguments)
        return _lines(run_simulated(builder).collected)
    add_chain(builder, number)
    graph = builder.graph()
    results = results_of(graph)
    sinks = {node.name: node.operator.sink for node in graph.nodes if isinstance(node.operator, Write)}
    return _lines({sink.name: results[name] for name, sink in sinks.items() if isinstance(sink, Collect)})


def simulated_lines(number: int) -> Counter[str]:
    """What the simulator collects."""
    builder = Builder()
    add_chain(builder, number)
    run = run_simulated(builder, seed=number)
    assert run.errors == ()
    return _lines(run.collected)


def written_lines(out: Path, number: int) -> Counter[str]:
    """What a run has written to the folders of a pipeline."""
    found: Counter[str] = Counter()
    for path in out.glob(f"{number}-*/*.txt"):
        collection = path.parent.name.partition("-")[2]
        found.update(f"{collection} {line}" for line in path.read_text(encoding="utf-8").splitlines())
    return found


def _lines(collected: Any) -> Counter[str]:  # noqa: ANN401  # a mapping of lists
    return Counter(f"{name} {each}" for name, elements in collected.items() for each in elements)


def _records(chance: random.Random) -> tuple[list[list[Any]], list[tuple[str, int]], float, int]:
    sizes = [chance.choice((0, 30, 60)) for _ in range(chance.randint(1, 3))]
    inputs = [
        [(chance.randint(-30, 60), chance.choice(KEYS), chance.randint(-3, 3)) for _ in range(size)] for size in sizes
    ]
    names = sorted(STATELESS | STATEFUL)
    steps = [(chance.choice(names), chance.randint(1, 2)) for _ in range(chance.randint(2, 5))]
    return inputs, steps, chance.choice((4, 20, 100)), chance.randint(1, 2)


def _columns(chance: random.Random) -> tuple[list[list[dict[str, Any]]], list[int], tuple[Any, ...]]:
    values: Sequence[int | None] = (None, -3, 0, 2, 3, 2**63 - 1, -(2**63))
    tables = [
        [
            dict(
                zip(
                    SCHEMA.names,
                    (chance.randint(-30, 60), chance.choice([None, "", "ключ", "b"]), chance.choice(values)),
                    strict=True,
                )
            )
            for _ in range(chance.choice((5, 30)))
        ]
        for _ in range(chance.randint(1, 2))
    ]
    steps = [chance.choice(sorted(COLUMN_STEPS)) for _ in range(chance.randint(0, 3))]
    window = chance.choice(WINDOWS).allow_lateness(chance.choice((0, 7)))
    return tables, [chance.randint(1, 9)], (steps, window, chance.choice((0, 4)), chance.randint(1, 2))
