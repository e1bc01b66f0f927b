"""Runs many cells of one place as processes, with `heron run`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from heron_testing.hostile_arguments.author_file import FILE_NAME, author_text
from heron_testing.hostile_arguments.calls import CALLS
from heron_testing.hostile_arguments.cells import Cell, Outcome, contradictions, judged
from heron_testing.hostile_arguments.components import NEIGHBOURS
from heron_testing.sandbox import Sandbox

__all__ = ["faults_of_processes"]

_ERROR = "heron: topology 'hostile', "
_AGAIN = " was raised again; "  # the error itself is shown before
_SUBMIT = """

import sys

from heron_testing.hostile_arguments.components import Place
from heron_testing.hostile_arguments.matrix_topology import topology_of

topology_of(sys.modules[__name__], Place({place!r}), {cells!r}, out={out!r}).build_and_submit()
"""


def faults_of_processes(sandbox: Sandbox, expected: Mapping[Cell, Outcome], *, timeout_s: float = 120.0) -> list[str]:
    """Run cells of one place and one kind of component, one after the other, in one task; return what is wrong.

    The same is required as of a cell in the simulator, except that a tuple of a cell may also be acked. The errors must
    be those of the expected outcomes, of which each cell has another call.
    """
    cells = list(expected)
    folder = sandbox.root / f"hostile{len(sandbox.runs)}"
    folder.mkdir()
    chosen = [(CALLS.index(cell.call), cell.argument) for cell in cells]
    text = author_text() + _SUBMIT.format(place=cells[0].place.value, cells=chosen, out=str(folder))
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    run = sandbox.start(folder / FILE_NAME)
    if code := run.wait(timeout_s):
        return [f"exit code {code}: {run.all_output}"]
    numbers = range(2 * len(cells) + NEIGHBOURS)
    neighbours = [each for each in numbers if each % 2 == 0 or each > 2 * len(cells)]
    found = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("sink", "acked", "failed")}
    faults = []
    if (arrived := [each for each in found["sink"] if each in neighbours]) != neighbours:
        faults.append(f"neighbours {neighbours} arrived as {arrived}")
    if sorted(found["acked"] + found["failed"]) != list(numbers):
        faults.append(f"the numbers were acked as {found['acked']}, and failed as {found['failed']}")
    errors = [line for line in run.stdout.splitlines() if line.startswith(_ERROR) and _AGAIN not in line]
    for error in errors:
        verdicts = [judged(cell, [error]) for cell in cells]
        if all(verdict.outcome is Outcome.FAULT for verdict in verdicts):
            faults.append(verdicts[0].reason)
    return [*faults, *contradictions(expected, errors)]
