"""Checks of a master before a JVM starts: whether it answers, and whether it has the right version of Spark.

Spark itself would report an absent master or another version only after a timeout of a minute.
"""

from __future__ import annotations

import re
import socket
import urllib.request
from contextlib import suppress
from http.client import HTTPException

from pyspark.version import __version__

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.master import Cluster, Master
from heron_scheduler_spark.settings.options import SparkOptions

__all__ = ["check_master", "check_version"]

_PORT = "spark.master.ui.port"
_DEFAULT_PORT = "8080"
_BYTES = 64 * 1024
_VERSION = re.compile(r'class="version[^>]*>\s*(?P<version>(?P<major>\d+)\.[^<\s]*).{0,200}Spark Master at', re.DOTALL)


def check_master(master: Master, timeout_s: float) -> None:
    """Check that one of a master's addresses accepts connections.

    Raises:
        SchedulerError: when none does; has the reason for each address.
    """
    refusals = []
    for address in master.addresses:
        try:
            socket.create_connection(address, timeout_s / len(master.addresses)).close()
        except OSError as error:
            refusals.append(f"{address[0]}:{address[1]}: {error.strerror or error}")
        else:
            return
    if refusals:
        name = "resource manager of YARN" if master.cluster is Cluster.YARN else "Spark master"
        msg = f"no {name} answers at {master.url} ({'; '.join(refusals)}); start it, or set scheduler.master"
        raise SchedulerError(msg)


def check_version(options: SparkOptions, master: Master, timeout_s: float) -> None:
    """Read the version from the page of a standalone master, at port 8080 or the `spark.master.ui.port` of `conf`.

    A page that is absent or has no version is ignored.

    Raises:
        SchedulerError: when the major version differs from that of this command.
    """
    if master.cluster is not Cluster.STANDALONE:
        return
    port = options.spark_conf.get(_PORT, _DEFAULT_PORT)
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
