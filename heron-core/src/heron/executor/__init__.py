"""The executor: one process per container, which starts, restarts and stops the container's other processes.

Pure modules decide: `container_processes` (which processes), `process_restarts` (when one starts again),
`container_stop`. The others touch the system: `main` and `container_run`, `workspace` with `task_packages` (new code),
`container_keys`, `children` with `child_outputs` (what they print) and `kill_causes` (who sent a signal, in words),
`key_changes`, `location_server`. `executor` joins all of them.
"""
