"""Renders plans, status, metrics and progress for people.

In: frozen values of the rooms below. Out: lines of text, tables, and the documents of ``--json`` that differ from the
values. Called by `heron_cli.commands` and `heron_cli.foreground`. Most of it is pure; `live` writes to the terminal.

- `text`: counts, sizes, times, columns, and texts without control characters; `console`: where tables are printed
- the topologies of a profile: `topology_table`
- one topology: `status_line`, `status_table`, `status_text`, `metrics_text`, `checkpoint_text`, `trace_text`,
  `update_text`, `code_text`
- what it could not process: `dead_letter_text`
- its plans before it runs: `plan_tree`, `plan_picture`
- `tasks`: what one task answered about its inside
- `live`: what a command shows while it works
"""
