"""What a task knows about itself for others: counts, times, spans, and what commands may look at.

The task thread writes it. The runner publishes it once in a period, and the gateway reads `inspected_task`.

Reading order: `task_metrics`, `task_time` (where its time goes), `spans` (of traces), `inspected_task`.
"""
