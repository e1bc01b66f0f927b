"""The wire: frames, control messages, sockets, and the event loop of a process that owns sockets.

- `frames`: the bytes of tuples, acks, traces and metrics
- `documents`: answers about a topology, as values
- here: `envelope` and `control_pb2` (control messages), `reduced_messages` (those above the limit), `link` (credit),
  `violations` (frames that break the protocol), `socket` (refuses large messages, ends silent connections),
  `guarded_hub` (refuses unknown peers) and `watched_channel` (ZeroMQ, which no module outside this package imports)
  with `keys`, `endpoint`, `network`; `reactor`, `wakeup` and `machine` (the event loop,
  and what it takes from the machine); `locator` (the link to the leading
  topology manager; refuses a deposed one), `query` (the link of a command) with `task_question` (what it asks a task),
  `process_metrics`
"""
