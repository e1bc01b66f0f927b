"""What the task thread does now, as the gateway thread sees it: calls of user code that last too long, and waits.

Reading order: `engine_wait` (what the engine waits for), `long_calls` (calls that last too long), `debuggers`
(what stops the task).
"""
