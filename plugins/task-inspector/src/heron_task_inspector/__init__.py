"""The task inspector of Heron: the threads, a profile, the memory and tuples of a task, when a command asks.

A task imports this package at the first question. Each question runs on a thread of its own.

Reading order: `inspector` (the questions); for stacks `thread_stacks`, `thread_usage`, `source_line`; `profiler`; for
memory `memory_observer`, `memory_look`, `allocations`, `memory_holders`, `object_sizes`, `process_memory`; for tuples
`tuple_sample`, `value_text`; for captures `load_capture`, `value_shape`, `plain_pickle`.
"""
