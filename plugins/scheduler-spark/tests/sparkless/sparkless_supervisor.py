"""The supervisor of jobs with the driver that needs no Spark."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from heron_scheduler_kit.supervisor import supervise
from heron_scheduler_spark.spark_executors import SparkExecutors

if __name__ == "__main__":
    driver = (sys.executable, "-P", str(Path(__file__).with_name("sparkless_driver.py")))
    sys.exit(supervise(functools.partial(SparkExecutors, driver=driver), *sys.argv[1:]))
