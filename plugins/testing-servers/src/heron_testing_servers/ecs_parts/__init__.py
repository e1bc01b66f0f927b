"""The ECS of the tests, written from its published interface, in front of moto, which has the other services.

In: signed requests of clients. Out: answers, and containers as processes of this machine.

`api` is the process. `access` checks signatures and policies; `catalog` and `services` answer requests, with `requests`
and `definitions`. `controller` keeps services running, with `tasks`, `placement` and `agent`.
"""
