"""The executor: one process per container, which starts, restarts and stops the container's other processes.

Pure modules decide: `container_processes`, `process_restarts`, `container_stop`. `workspace`, `children`, `key_changes`
and `location_server` touch the system, and `executor` joins all of them.
"""
