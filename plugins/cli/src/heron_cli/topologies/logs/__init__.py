"""The logs of a run: its folder on this machine, read from the end, followed and searched.

In: the folder of a run, and perhaps a task or a process. Out: `LogLine` values. Called by `heron_cli.client`.

Reading order: `log_files` (the folder and its lines), `log_reader` (the last lines, then new ones until the topology
ends), `log_search`, `whole_log` (the bytes of a log with its older parts), `remote_logs` (those that a scheduler
keeps), `dead_letters` (the files of records that always failed).
"""
