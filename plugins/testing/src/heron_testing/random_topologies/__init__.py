"""Random topologies and an oracle that says what they must give: for engines, serializers and groupings.

A program (`program`) is a topology as plain data. `drawing` draws it from a seed, `program_topology` makes the topology
of it from the components in `spouts` and `bolts`, and `oracle` computes what its bolts receive, without an engine.
`simulated` and `processes` run it and compare. `shrinking` makes a failing program small, and `program_file` writes it
as a file that people read and run.
"""

from heron_testing.random_topologies.comparison import differences
from heron_testing.random_topologies.drawing import Choices, random_program
from heron_testing.random_topologies.program import BoltProgram, Call, Emit, Input, Program, SpoutProgram, Update
from heron_testing.random_topologies.program_topology import topology_of
from heron_testing.random_topologies.shrinking import shrunk

__all__ = [
    "BoltProgram",
    "Call",
    "Choices",
    "Emit",
    "Input",
    "Program",
    "SpoutProgram",
    "Update",
    "differences",
    "random_program",
    "shrunk",
    "topology_of",
]
