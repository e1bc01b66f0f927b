"""The master and the agents of the Mesos of the tests, written from the published interface.

In: calls of frameworks, and questions of operators. Out: events, and tasks as processes of this machine.

`server` is the process, with `calls` (of schedulers) and `state` (for operators). `master` decides, with `offers`,
`agent`, `framework`, `registry` (what a master keeps) and `resources`.
"""
