"""What Spark's own connection to its cluster tells of it: how large it is. None where it does not tell."""

from __future__ import annotations

import logging
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext

from heron_scheduler_spark.cluster_size import WorkerSize

__all__ = ["largest_on_yarn", "standalone_workers"]

_MESSAGES = "org.apache.spark.deploy.DeployMessages"

_log = logging.getLogger(__name__)


def standalone_workers(context: SparkContext, host: str, port: int) -> list[WorkerSize] | None:
    """The workers that a standalone master has; None for one that only stands by.

    The master's own message is used, since its pages are at an address that an application is not told. Asking
    the environment by its methods would load classes that Spark does not bring.
    """
    try:
        jvm = cast("Any", context._jvm)  # Python has no other way to the master
        load = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass
        field = load("org.apache.spark.SparkEnv").getDeclaredField("rpcEnv")
        field.setAccessible(True)
        environment = field.get(context._jsc.sc().env())
        master = environment.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, port), "Master")
        question = load(f"{_MESSAGES}$RequestMasterState$").getField("MODULE$").get(None)
        answer = jvm.scala.reflect.ClassTag.apply(load(f"{_MESSAGES}$MasterStateResponse"))
        said = master.askSync(question, answer)
        if said.status().toString() != "ALIVE":
            return None
        alive = [each for each in said.workers() if each.state().toString() == "ALIVE"]
        return [WorkerSize(str(each.host()), int(each.cores()), int(each.memory())) for each in alive]
    except (Py4JError, AttributeError, TypeError) as error:
        _log.warning("how large the cluster is cannot be told by %s:%d: %s", host, port, error)
        return None


def largest_on_yarn(context: SparkContext) -> WorkerSize | None:
    """The largest container that the resource manager ever gives; what is asked for beyond it never comes."""
    try:
        jvm = cast("Any", context._jvm)
        client = jvm.org.apache.hadoop.yarn.client.api.YarnClient.createYarnClient()
        client.init(jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(context._jsc.hadoopConfiguration()))
        client.start()
        try:
            most = client.createApplication().getNewApplicationResponse().getMaximumResourceCapability()
            return WorkerSize("yarn", int(most.getVirtualCores()), int(most.getMemorySize()))
        finally:
            client.stop()
    except (Py4JError, AttributeError, TypeError) as error:
        _log.warning("how large a container of YARN may be cannot be told: %s", error)
        return None
