"""From a connection to a path: which requests are admitted, and how answers, errors and live values reach a client.

In: requests. Out: responses and server-sent events. The event loop of `service` runs it, in one thread that never
waits for a topology. `heron ui` adds pages to the application.

Reading order: `application` (all paths together, and errors as responses), `access` (which requests are admitted) with
`access_token` and `address`, `bounded_protocol` (how long and how large a request may be, and which connection makes
place for another one), `repeated_records` (one log line a minute of each kind), `live_stream` (values that change while
a client listens).
"""
