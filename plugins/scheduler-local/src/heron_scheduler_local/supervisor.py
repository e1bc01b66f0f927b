"""The supervisor process of a job: ``python -m heron_scheduler_local.supervisor JOBFILE LOCK_FD READY_FD``.

The main thread starts the executors, because they get their parent-death signal when the thread that started them ends.
This module imports little, because every run waits for it.
"""

from __future__ import annotations

import sys

from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_local.local_executors import LocalExecutors

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(supervise(LocalExecutors, *sys.argv[1:]))
