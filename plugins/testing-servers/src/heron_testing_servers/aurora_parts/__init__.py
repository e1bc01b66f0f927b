"""The Aurora of the tests, written from its published interface.

In: calls of clients in Thrift. Out: answers, and the instances of jobs as processes of this machine.

`server` is the process. `reads` and `writes` answer calls, with `updates`, `tasks`, `placement` and `interface`;
`thermos_runner` runs each task.
"""
