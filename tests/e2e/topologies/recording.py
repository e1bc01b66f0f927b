"""The shared parts of these topologies: the folder of results, and a bolt that stores all it receives."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heron.api import Bolt, TopologyContext, Tuple


def arguments(**defaults: Any) -> argparse.Namespace:  # noqa: ANN401  # any type that argparse accepts
    """Parses the command line: ``--out``, and one option for each default, with its type."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args(sys.argv[1:])


def write_result(out: str, context: TopologyContext, rows: list[Any]) -> None:
    """Writes the result of a task in one step."""
    path = Path(out, f"{context.get_component_id()}-{context.get_task_id()}.json")
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(rows), encoding="utf-8")
    part.rename(path)


class RecordBolt(Bolt):
    """Stores source component, stream, source task and values of each tuple, and writes them at the end."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no tuple."""
        self.out = config["out"]
        self.context = context
        self.rows: list[Any] = []

    def process(self, tup: Tuple) -> None:
        """Stores a tuple."""
        self.rows.append([tup.component, tup.stream, tup.task, *tup.values])

    def finish(self) -> None:
        """Writes them."""
        write_result(self.out, self.context, self.rows)
