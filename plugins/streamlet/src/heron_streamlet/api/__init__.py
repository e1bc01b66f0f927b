"""What the author of a pipeline calls: each call adds one operator to the pipeline.

In: the author's functions, sources, sinks and windows. Out: a checked graph of operators (`plan`), which `runner` hands
to the engine of the profile. It runs in the process that loads the author's file.

Reading order: `builder` (a pipeline under construction), `stream` (one operator of it), `streamlet` (streams of records
and of columns), `checked_operators` and `column_operators` (an author's arguments become an operator, or an error),
`config`, `runner`.
"""
