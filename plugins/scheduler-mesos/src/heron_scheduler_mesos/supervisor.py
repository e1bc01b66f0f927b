"""The supervisor process of a job: ``python -m heron_scheduler_mesos.supervisor JOBFILE LOCK_FD READY_FD``."""

from __future__ import annotations

import logging
import sys

from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_mesos.mesos_executors import MesosExecutors

__all__: list[str] = []

if __name__ == "__main__":
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every request
    sys.exit(supervise(MesosExecutors, *sys.argv[1:]))
