"""What the tracker knows of a topology at a moment, as frozen values. Pure.

In: a status, metrics and plans, as the client gives them. Out: one value for each topology, with its age. A watch makes
the values in its thread, and every thread may read them.

Reading order: `observed` (the value itself), `task_figures` (what the metrics say of each task) with `engine_metrics`
(what only the history keeps), `recent_failures` and `recent_memory` (what the last minutes say), `seen_checkpoints`,
`flow_items` (what is made of a value once, and kept with it).
"""
