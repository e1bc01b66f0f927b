"""Loads the author's file in a child process: a topology, and the files of its program.

In: the path of a file and its arguments. Out: a `LoadedTopology`, or the author's mistake with its line. Called by the
commands `run`, `submit` and `plan`, and by `heron_cli.launch.prepare`. `loaded` and `stored_program` (the program of a
stored package instead of a file) belong to the command; `loader`, `compat_plugin`, `program` and `load_failure` run in
the child.

Reading order: `loaded`, `stored_program`, `load_report` (what goes through the pipe), `loader`, `compat_plugin`,
`program`, `load_failure`.
"""
