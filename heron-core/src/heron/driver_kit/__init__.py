"""Helpers for engine processes and drivers: files, processes, secrets, logs. `heron_driver_kit` has the others.

Reading order:

- loading: `loading` (drivers and optional parts by name), `core_version`, `moved_modules`
- processes: `child_processes` and `parent_process` (no child outlives its parent), `process_starter`, `fork_server`
  with `fork_server_loop`, `signals`, `command_line`, `code_origin` (whose code a frame runs)
- files and logs: `private_files`, `log`, `followed_log` (a log that is renamed when it is full), `redaction` (secrets)
- the state manager: `large_values`, `large_watch`, `node_documents`, `scheduler_job`, `planned_runs` (a run that a dry
  run has planned)
- the network: `links`
- overload: `keep_controller` (which share of tuples is kept), `shedding_chances` (which tuples those are)
"""
