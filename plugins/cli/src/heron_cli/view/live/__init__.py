"""What a command shows while it works: the live view of a run, and the steps of a submission or a kill.

In: statuses, lines of the author's program, steps. Out: a table or a bar on a terminal, plain lines on a pipe. The
callers are `heron_cli.foreground` and commands that take long. Modules with rich are imported by name, on a terminal.

Reading order: `run_view` (what a view is, and the plain one), `live_view`; `progress_output`, `quiet_progress`,
`progress_bar`, `upload_bar`.
"""
