"""The state of a task: entries by key group, their snapshots, and the checkpoints that save and restore them.

In: the author's reads and changes, and the orders of a plan or a marker. Out: payloads for a checkpoint store. Belongs
to the task thread; `checkpoint_saver` stores on a thread of its own.

Reading order: `keyed_state` with `owned_groups` (refuses keys of other tasks), `state_migration` and `state_table`
(with the time to live; reads check it in `heron.api.keyed_state`), `stored_state` with `state_backends` (state on
disk), `state_snapshot`, `state_payload` (its bytes), `task_checkpoints`, `checkpoint_saver`, `held_letters` (dead
letters until their checkpoint is complete).
"""
