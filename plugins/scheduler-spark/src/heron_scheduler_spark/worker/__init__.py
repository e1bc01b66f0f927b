"""What a Python worker of Spark does: it starts the executor of one container, watches it, and ends with it.

In: the order inside a task of Spark, then messages of the driver. Out: messages to the driver, and logs. Spark calls
`container_task` in the worker; a thread feeds the logs to Spark's pages.

Reading order: `container_task` (the task), `worker_report` (checks of a worker before the start), `task_link` (the link
to the driver), `container_logs`.
"""
