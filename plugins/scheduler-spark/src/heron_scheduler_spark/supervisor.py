"""The supervisor process of a job: ``python -m heron_scheduler_spark.supervisor JOBFILE LOCK_FD READY_FD``.

It does not import Spark. It starts the driver process, and starts it again when it dies.
"""

from __future__ import annotations

import sys

from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_spark.spark_executors import SparkExecutors

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(supervise(SparkExecutors, *sys.argv[1:]))
