"""The executor, one per container: starts the container's processes, keeps them running, and stops them.

Pure files first (`container_processes`, `supervisor`, `shutdown`), then what touches the system (`workspace`,
`children`, `location_service`), then the shell (`executor`) and `main`.
"""
