"""A whole topology simulated from a seed: all roles with their own code, on simulated machines.

Reading order: `world` (the event queue), `process`, `network` and `sockets` (what a role takes from its machine),
`stores` (state manager, checkpoint store, packages), `roles` (how processes start), `invariants` (what must hold in
them), `cluster` (the containers of a topology), `faults`, `commands` (updates), `workload` (the topology and what it
must do), `simulation` (one run), `forked_run`, `shrinking`, `clocks` (before all imports of the engine), `__main__`
(the command), `authors` (topologies of others).
"""
