"""Loads the author's file in a child process: a topology, and the files of its program.

In: the path of a file and its arguments. Out: a `LoadedTopology`, or the author's mistake with its line. Called by the
commands `run`, `submit` and `plan`, and by `heron_cli.launch.prepare`. `loaded` belongs to the command; `loader`,
`program` and `load_failure` run in the child.

Reading order: `loaded`, `load_report` (what goes through the pipe), `loader`, `program`, `load_failure`.
"""
