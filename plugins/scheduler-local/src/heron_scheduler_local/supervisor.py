"""The supervisor process of a job: ``python -m heron_scheduler_local.supervisor JOBFILE LOCK_FD READY_FD``.

The main thread starts the executors, because they get their parent-death signal when the thread that started them ends.
They are forked by a fork server, whose imports all containers share. This module imports little, because every run
waits for it.
"""

from __future__ import annotations

import functools
import signal
import sys

from heron.driver_kit.process_starter import ProcessStarter
from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_local.local_executors import LocalExecutors

__all__: list[str] = []

EXECUTOR = "heron.executor.main"

if __name__ == "__main__":
    starter = ProcessStarter(signal.SIGTERM, {EXECUTOR: (EXECUTOR, "heron.instance.main")})
    fork = functools.partial(starter.fork, sys.argv[1])
    sys.exit(supervise(functools.partial(LocalExecutors, starter=starter), *sys.argv[1:], begin=fork))
