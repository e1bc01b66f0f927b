"""Looks into the task, because a command has asked: its threads, a profile, its memory, its tuples.

In: the requests of the topology manager, on the gateway thread. Out: one answer each. An observation that lasts runs on
a thread of its own, which exists only meanwhile. Nothing here costs time while nobody asks.

Reading order: `inspection` (the questions), `task_observer` (the thread), `profiler`; for memory `memory_observer`,
`memory_look`, `allocations`, `memory_holders`, `object_sizes`, `process_memory`; for tuples `tuple_sample`,
`value_text`.
"""
