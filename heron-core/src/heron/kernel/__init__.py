"""The parts of the engine that several processes share: settings, packages, user code, hooks, role processes.

Reading order:

- the author's program: `package` (an archive) with `manifest`, `user_code` (loads the file), `author_topology` (chooses
  the topology of the file)
- a process: `role_process` (signals, exit codes, threads that do not end), `role_spec` (what it reads at its start),
  `settings`, `process_keys`, `telemetry` (its metrics and events), `own_cgroup`
- loaded when needed: `observers` and `observer_threads` (hooks), `checkpoint_store`, `installed_inspector`
- of tasks: `dead_letter_file`, `queue_capacity` (how much a queue may hold)
"""
