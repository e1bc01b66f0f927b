"""Runs a topology in the foreground: ``heron run``.

In: a `RunRequest`, and the topology that is being loaded. Out: the author's output on stdout, the live view on stderr,
a report, an exit code. The topology ends with the command. Called by `heron_cli.commands.run` only, by name, while a
child process loads the author's file.

Reading order: `run_report` (the request and the report), `foreground_run` (the whole run), `run_monitor` (follows it),
`reloading` (``--reload``), `run_page` (``--ui``), `simulated` (``--simulate``: the same topology in this process),
`seeded` (``--seed``: on simulated machines).
"""
