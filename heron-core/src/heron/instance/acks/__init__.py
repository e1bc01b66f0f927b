"""What is tracked: the roots of received tuples, and the roots that a task has in flight.

In: the options of received segments, and the outcomes of roots. Out: the places that are settled, and calls of the
author's `ack` and `fail`. Belongs to the task thread.

Reading order: `tracked_batch` and `batch_arrays` (received), `failed_rows` (why rows failed), `foreign_tuples` (acks
and anchors of what the task did not receive), `pending_roots` (in flight), `held_acks` (they wait for a checkpoint),
`owed_replays` (they are emitted again).
"""
