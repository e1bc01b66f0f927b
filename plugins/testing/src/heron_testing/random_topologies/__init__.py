"""Random topologies and an oracle that says what they must give: for engines, serializers and groupings."""

from heron_testing.random_topologies.drawing import Choices, random_program
from heron_testing.random_topologies.program import BoltProgram, Call, Emit, Input, Program, SpoutProgram, Update
from heron_testing.random_topologies.simulated import simulated_differences

__all__ = [
    "BoltProgram",
    "Call",
    "Choices",
    "Emit",
    "Input",
    "Program",
    "SpoutProgram",
    "Update",
    "random_program",
    "simulated_differences",
]
