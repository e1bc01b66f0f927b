"""Stages that run, on any engine: the code of a stage, the state of its keys, and the windows that close.

In: a stage, rows of other stages, watermarks. Out: rows for other stages. Engines call it: `topology` in the tasks of
Heron, `heron_engine_spark` in the tasks of Spark.

Reading order: `stage_host` (what an engine provides), `stage_code` (the function of a stage), `keyed_stage` (a stage
with state), `timers` (when windows close), `paned_stage` (windows without a state for each key), `early_results`,
`total_count` (of what was lost).
"""
