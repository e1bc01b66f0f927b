"""What a task knows about itself for others: counts, times and spans.

The task thread writes it. The runner publishes it once in a period.

Reading order: `task_metrics`, `task_time` (where its time goes), `spans` (of traces), `source_meter` (what is offered
to a spout that sheds, and how long it waits).
"""
