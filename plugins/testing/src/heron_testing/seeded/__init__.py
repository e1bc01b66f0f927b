"""A whole topology simulated from a seed: all roles with their own code, on a simulated machine.

Reading order: `world` (the event queue), `process`, `network` and `sockets` (what a role takes from its machine),
`stores` (state manager, checkpoint store, packages), `roles` (how processes start), `workload` (the topology and what
it must do), `commands` (updates), `faults`, `simulation` (one run), `forked_run`, `shrinking`, `clocks` (before all
imports of the engine), `__main__` (the command).
"""
