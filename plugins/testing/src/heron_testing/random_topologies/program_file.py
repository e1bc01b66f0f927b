"""A program as a Python file that people read and run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from heron.errors import UsageError
from heron_testing.random_topologies.comparison import differences
from heron_testing.random_topologies.program import Program
from heron_testing.random_topologies.program_topology import topology_of
from heron_testing.random_topologies.simulated import simulated_differences
from heron_testing.random_topologies.task_memory import memories_in

__all__ = ["engine_options", "program_text", "submit"]

_WIDTH = 110
_SHOWN = 5  # differences
_HEAD = '''"""{title}

python FILE                               runs it in the simulator, and prints the differences
heron run FILE {options} -- --out FOLDER
                                          runs it as processes
python FILE --out FOLDER                  prints the differences of that run
"""

from heron_testing.random_topologies import BoltProgram, Call, Emit, Input, Program, SpoutProgram, Update
from heron_testing.random_topologies.program_file import submit

PROGRAM = {program}

if __name__ == "__main__":
    submit(PROGRAM)
'''


def program_text(program: Program, found: Sequence[str] = ()) -> str:
    """The text of a file with a program; its first lines name the seed and the first differences."""
    title = "\n".join([f"Random topology {program.seed}.", *(f"Difference: {line!a}" for line in found[:_SHOWN])])
    options = " ".join(engine_options(program))
    return _HEAD.format(title=title.replace("\\", "/"), options=options, program=_literal(program, ""))


def submit(program: Program) -> None:
    """Submit the topology of a program to the command that runs the file; without one, print the differences.

    Raises:
        TopologyError: when the program has an input that does not exist.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="")
    out = parser.parse_args().out
    try:
        topology_of(program, out).build_and_submit()
    except UsageError:  # Python itself runs the file
        found = differences(program, memories_in(Path(out))) if out else simulated_differences(program)
        sys.stdout.write("\n".join(found or ["no difference"]) + "\n")


def engine_options(program: Program) -> list[str]:
    """The options of ``heron run`` that set the engine as the program wants it."""
    return [
        f"--set=heron.instance.batch.rows={program.batch_rows}",
        f"--set=heron.instance.batch.bytes={program.batch_bytes}",
        f"--set=heron.tuple.max.bytes={program.tuple_max_bytes}",
    ]


def _literal(value: object, indent: str) -> str:
    """A value as Python; fields with their defaults are left out, and what is too long has a line for each part."""
    if isinstance(value, tuple):
        parts = [_literal(each, f"{indent}    ") for each in value]
        begin, end = "(", ",)" if len(parts) == 1 else ")"
    elif is_dataclass(value):
        begin, end = f"{type(value).__name__}(", ")"
        parts = [
            f"{each.name}={_literal(getattr(value, each.name), f'{indent}    ')}"
            for each in fields(value)
            if getattr(value, each.name) != each.default
            and (each.default_factory is MISSING or getattr(value, each.name) != each.default_factory())
        ]
    else:
        return repr(value)
    line = f"{begin}{', '.join(parts)}{end}"
    if len(line) + len(indent) <= _WIDTH and "\n" not in line:
        return line
    lines = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{begin}\n{lines}{indent})"
