"""Brings a topology from the author's file to its scheduler, and changes the tasks of a running one.

In: the author's file, a profile, labels; or new numbers of tasks. Out: a package in the uploader, nodes in the state
manager, a job at the scheduler. Called by `heron_cli.client`, by name, and by `heron_cli.foreground`; `update` also by
the health manager.

Reading order: `loading` (from the file to a topology), `prepare` (verified and packed), `start_from` (with the state of
a checkpoint), `submission` (the steps, and how they are undone) with `target`, `container_specs`, `named_drivers` and
`services`; then `update` and `rebalance`, and `code` (new code).
"""
