"""The topology manager, one leader per topology: knows who is there, keeps the plan, and says when it is over.

Pure files first: what it knows (`registry`, `task_table`, `metrics_cache`, `pressure_board`, `error_list`), what it
decides (`topology_state`, `assignment`, `stop_sequence`), and `leader`, which turns events into instructions. Then the
shell: `lease`, `state_store` and `service`, joined by `main`.
"""
