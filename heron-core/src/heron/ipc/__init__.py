"""The wire: frames, control messages, sockets, and the event loop of a process that owns sockets.

- `frames`: the bytes of tuples, acks, traces and metrics
- `documents`: answers about a topology, as values
- here: `envelope` and `control_pb2` (control messages), `reduced_messages` (those above the limit), `link` (credit),
  `socket`, `guarded_hub` and `watched_channel` (ZeroMQ, which no module outside this package imports) with `keys`,
  `endpoint`, `network`; `reactor` and `wakeup` (the event loop); `locator` and `query` (the way to the topology
  manager)
"""
