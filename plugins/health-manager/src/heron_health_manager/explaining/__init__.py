"""From symptoms to causes in words: what `heron explain` knows of a topology, and what follows from it.

In: a topology that runs or has ended, and a time. Out: problems with their causes, the most serious first, as values
and as at most eight lines. `explain_command` calls it, in the thread of the command. Only `gathering` and
`history_files` read sockets and files; all else is pure.

Reading order: `span` (how far back), `gathering` (the facts) with `enough` (how long to observe) and `history_files`,
`facts`; `explain` (facts become an explanation) with one file for each kind of problem: `not_running`, `deaths` (with
`death_reason` and `growth`), `slowness` (with `exclusions`), `tuple_errors`, `poisoned`, `run_end`,
`uncounted_restarts`; `explanation` (the answer), `explanation_text` and `words` (its text).
"""
