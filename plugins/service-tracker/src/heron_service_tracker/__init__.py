"""A service that shows the topologies of several profiles over HTTP; `heron tracker` starts it.

In: requests of browsers and programs, and what topology managers and state managers answer. Out: JSON, live streams
and a history in a file. Watches have threads; requests are served by the thread of the event loop, which reads what
watches have left in memory.

Reading order: `command` and `command_options` (the words behind `heron tracker`, also for other distributions),
`service` (the process), then the rooms from what is seen to who sees it: `observed`, `watches`, `answers`, `history`,
`query`, `calls`, `paths`, `http`. `request_errors` is below all of them: why a request is refused.
"""
