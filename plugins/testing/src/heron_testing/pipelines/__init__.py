"""Pipelines in tests: what they mean, and runs in this process that collect their results.

| module | contents |
|---|---|
| `reference_engine` | what a pipeline means: the results that every engine has to give |
| `random_chains`, `column_chains`, `drawn_chains` | random pipelines, for property tests |
| `simulated_runs`, `fed_runs` | runs in the simulator: to the end, or while the test feeds the sources |
| `collected`, `shared_views` | the sink and the store that such runs write to |
| `early_parts` | what holds for early results on every engine |
| `level_runs` | the levels of the engine on Spark, without Spark |

It needs the extra ``heron-testing[pipelines]``; `level_runs` also needs ``heron-engine-spark``.
"""
