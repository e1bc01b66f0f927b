"""All groupings: two spouts with a stream for each, and a bolt of three tasks, in two containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recording import RecordBolt, arguments

from heron.api import Grouping, ICustomGrouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple, api_constants

NUMBERS = 600


@dataclass(frozen=True)
class Number:
    """A value with a class of the script."""

    value: int


class Multiples(ICustomGrouping):
    """Sends multiples of `of` to the first two tasks, and no other tuple."""

    def __init__(self, of: int) -> None:
        self.of = of

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Stores the tasks."""
        self.tasks = list(target_tasks[:2])

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Returns both tasks or none."""
        return self.tasks if values[1].value % self.of == 0 else []


GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "all": Grouping.ALL,
    "lowest": Grouping.LOWEST,
    "fields": Grouping.fields("key"),
    "partial": Grouping.PARTIAL_KEY("key"),
    "local": Grouping.LOCAL_OR_SHUFFLE,
    "by_class": Grouping.custom(Multiples, {"of": 5}),
    "by_object": Grouping.custom(Multiples(7)),
    "direct": Grouping.DIRECT,
}


class NumberSpout(Spout):
    """Emits numbers with a key on every stream."""

    outputs = tuple(Stream(fields=["key", "number"], name=name) for name in GROUPINGS)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Divides the numbers among the tasks."""
        self.numbers = iter(range(context.get_task_index(), NUMBERS, context.get_parallelism()))
        self.tasks = context.get_component_tasks("record")

    def next_tuple(self) -> None:
        """Emits one number; on the stream "direct", to a task that it selects."""
        for number in self.numbers:
            for name in GROUPINGS:
                task = self.tasks[number % len(self.tasks)] if name == "direct" else None
                self.emit([f"key{number % 17}", Number(number)], stream=name, direct_task=task)
            return
        self.end()


class NumberBolt(RecordBolt):
    """Stores numbers in a JSON form."""

    def process(self, tup: Tuple) -> None:
        """Stores a number."""
        values = [each.value if isinstance(each, Number) else each for each in tup.values]
        self.rows.append([tup.component, tup.stream, tup.task, *values])


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("groupings")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, "out": options.out})
    numbers = builder.add_spout("numbers", NumberSpout, par=2)
    inputs = {numbers[name]: grouping for name, grouping in GROUPINGS.items()}
    builder.add_bolt("record", NumberBolt, par=3, inputs=inputs)
    builder.build_and_submit()
