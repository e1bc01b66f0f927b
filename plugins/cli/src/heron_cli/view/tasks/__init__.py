"""What one task answered about its inside, as text and as pictures: its threads, time, memory and tuples. Pure.

In: `TaskStacks`, `TaskProfile`, `TaskMemory`, `TaskTuples`. Out: lines, and an SVG. Called by the commands of the same
subjects.

Reading order: `stack_text`, `profile_text`, `flame_graph`, `memory_text`, `tuples_text`.
"""
