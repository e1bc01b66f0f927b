"""What the suites compare with, and the processes that they start.

In: a driver, or calls to it. Out: what a correct driver does, and what a second process has done. Suites and fault
cases call it in the main thread of pytest; `second_process`, `statemgr_first_use` and `uploader_weight` are also the
main modules of processes.

Reading order: `second_process` (a process that a case kills) with `store_writers` (what it writes into a view);
models: `packing_reference`, `store_model`, `state_calls`; inputs: `health_topology`, `scheduler_bench`; cases of single
subjects: `statemgr_first_use`, `uploader_listing` with `uploader_weight`, `uploader_tags`.
"""
