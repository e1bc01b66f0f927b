"""The Marathon of the tests, written from its published interface.

In: requests of clients. Out: answers, and the tasks of apps as processes of this machine.

`api` is the process, with `views` and `sandboxes` for what clients read. `orchestrator` works, with `deployments`,
`cluster`, `checks` and `launch`; `root` and `apps` have the rules.
"""
