"""From observations to measurements: one value for each task, component or container. Pure.

In: the observations of the look-back window. Out: measurements; `docs/health.md` lists them. A round of a policy calls
each sensor, in the thread of the round.

Reading order: `window` (averages over the observations of the present plan), `task_sensors`, `flow_sensors`,
`routed_sensor`, `host_sensor`, `cause_sensors`, `latency_sensor`, and `sensors`, the list that the policies share.
"""
