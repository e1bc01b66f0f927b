"""The author's code in this process: its component, what the component is given, and its failures as people read them.

The task thread calls it, at the start and when user code raises.

Reading order: `user_component`, `task_context`, `queued_collector` (calls of the author's threads), `failure_places`,
`user_errors`.
"""
