"""Asks a cluster for its size through Spark's own connection. None means that the cluster does not report it."""

from __future__ import annotations

import logging
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext

from heron_scheduler_spark.application.cluster_check import WorkerSize

__all__ = ["largest_on_yarn", "standalone_workers"]

_MESSAGES = "org.apache.spark.deploy.DeployMessages"

_log = logging.getLogger(__name__)


def standalone_workers(context: SparkContext, host: str, port: int) -> list[WorkerSize] | None:
    """Return the workers of a standalone master; None for a standby master.

    It sends a message of the master's own protocol, because an application does not know the address of its pages.
    Reflection is needed: the methods of the environment would load classes that Spark does not ship.
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
        state = master.askSync(question, answer)
        if state.status().toString() != "ALIVE":
            return None
        alive = [each for each in state.workers() if each.state().toString() == "ALIVE"]
        return [WorkerSize(str(each.host()), int(each.cores()), int(each.memory())) for each in alive]
    except (Py4JError, AttributeError, TypeError) as error:
        _log.warning("%s:%d does not report the size of the cluster: %s", host, port, error)
        return None


def largest_on_yarn(context: SparkContext) -> WorkerSize | None:
    """Return the largest container that the resource manager gives; it never grants a larger request."""
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
        _log.warning("YARN does not report the size of its largest container: %s", error)
        return None
