"""The supervisor process of a job: ``python -m heron_scheduler_local.supervisor JOBFILE LOCK_FD READY_FD``.

The main thread is the one that starts executors, because their parent-death signal comes when the thread that started
them ends. It imports little: every run waits for it.
"""

from __future__ import annotations

import sys

from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_local.local_executors import LocalExecutors

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(supervise(LocalExecutors, *sys.argv[1:]))
