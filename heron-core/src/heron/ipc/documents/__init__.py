"""Answers of a topology manager or a task as frozen values, JSON on the wire: for commands, services and clients.

Reading order: `status`, `metrics_table` with `metric_names`, `traces_table`; about one task: `task_stacks`,
`task_profile`, `task_memory`, `task_tuples`.
"""
