"""A topology with checkpoints under random faults: the real leader and the real alignment, between modelled processes.

One seed is one schedule. It draws a topology, the order in which messages arrive, faults and updates. Processes, links
and the store are modelled. `ModelTask` and `ModelStmgr` restate what `heron.instance` and `heron.stmgr` do with plans,
segments, markers and losses.
"""

from parts.checkpoint_model.topology_model import TopologyModel

__all__ = ["TopologyModel"]
