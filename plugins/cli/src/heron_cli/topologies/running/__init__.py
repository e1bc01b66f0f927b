"""One running topology: questions to its topology manager, changes of it, and what it has in the state manager.

In: the name of a topology, and a time limit. Out: the answers of its topology manager and tasks, as frozen values.
Called by `heron_cli.client`, `heron_cli.launch`, the rooms above and the health manager. It takes a state manager and a
scheduler, and knows no profile.

Reading order: `remote_topology` (the connection) with `tmanager_client`, `topology_plans`, `status_report`; then what
waits until a change is done: `restart`, `runtime_config`, `key_rotation`, with `topology_end`; `code_request`.
"""
