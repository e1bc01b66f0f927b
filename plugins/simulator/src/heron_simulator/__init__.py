"""Runs spouts and bolts in one process, one at a time: for unit tests, breakpoints and ``heron run --simulate``."""

from heron_simulator.simulated_task import ComponentCounts
from heron_simulator.simulation import Simulation

__all__ = ["ComponentCounts", "Simulation"]
