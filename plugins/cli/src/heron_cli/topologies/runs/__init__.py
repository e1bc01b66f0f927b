"""The runs of a profile, running or over: found, classified, listed, ended and removed.

In: the nodes of the state manager, and what the scheduler reports. Out: the state of each run; when one is over, the
removal of its job, package, folders and nodes. Called by `heron_cli.client`, and by `heron_cli.launch`, which undoes a
submission that fails.

Reading order: `discovery` (the facts, and the state that follows from them), `topology_list`, `run_folders`, `cleanup`,
`kill_topology`.
"""
