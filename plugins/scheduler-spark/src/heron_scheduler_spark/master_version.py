"""Which Spark a standalone master is, as its page says: one of another major version never answers an application."""

from __future__ import annotations

import re
import urllib.request
from contextlib import suppress
from http.client import HTTPException

from pyspark.version import __version__

from heron.errors import SchedulerError
from heron_scheduler_spark.master import Cluster, Master
from heron_scheduler_spark.options import SparkOptions

__all__ = ["check_version"]

_PORT = "spark.master.ui.port"
_USUAL_PORT = "8080"
_BYTES = 64 * 1024
_VERSION = re.compile(r'class="version[^>]*>\s*(?P<version>(?P<major>\d+)\.[^<\s]*).{0,200}Spark Master at', re.DOTALL)


def check_version(options: SparkOptions, master: Master, timeout_s: float) -> None:
    """Asks the page where there is one, at the usual port or where `conf` says; another page says nothing.

    Raises:
        SchedulerError: when it says another major version than this command has.
    """
    if master.cluster is not Cluster.STANDALONE:
        return
    port = options.spark_conf.get(_PORT, _USUAL_PORT)
    for host, _ in master.addresses:
        found = _VERSION.search(_page(f"http://{host}:{port}/", timeout_s / len(master.addresses)))
        if found and found["major"] != __version__.partition(".")[0]:
            msg = (
                f"the Spark master at {host} is of version {found['version']}, and this command has pyspark "
                f"{__version__}: they must be of the same major version; set scheduler.master to such a cluster, or "
                "upgrade this one"
            )
            raise SchedulerError(msg)


def _page(url: str, timeout_s: float) -> str:
    with suppress(OSError, HTTPException, ValueError), urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310
        return str(answer.read(_BYTES).decode("utf-8", "replace"))
    return ""
