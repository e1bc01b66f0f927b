"""The queues between the gateway thread and the task thread, and their limits.

Reading order: `data_queue`, `flow_limits`.
"""
