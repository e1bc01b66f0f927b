"""Starts Spark in this process: the JVM, and the context in it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from heron.driver_kit.private_files import write_private
from heron_scheduler_spark.properties_file import encode_properties

__all__ = ["start_context"]


def start_context(master: str, python: str, settings: Mapping[str, str], scratch: Path) -> SparkContext:
    """Says all to it in the only ways that there are for a context that is made in this process.

    pyspark would write the settings on the command line of the JVM, where every user of the machine reads them. Raises
    what Spark likes: Py4JError, PySparkRuntimeError, OSError.
    """
    os.environ["PYSPARK_PYTHON"] = python
    tempfile.tempdir = str(scratch)  # where pyspark and its JVM meet
    os.environ["SPARK_SUBMIT_OPTS"] = f'{os.environ.get("SPARK_SUBMIT_OPTS", "")} "-Djava.io.tmpdir={scratch}"'
    if master.startswith("local"):  # its page would be at every address of this machine
        os.environ.setdefault("SPARK_LOCAL_IP", settings["spark.driver.bindAddress"])
    file = scratch / "settings.properties"
    write_private(file, encode_properties({"spark.master": master, **settings}))
    others = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--load-spark-defaults --properties-file {shlex.quote(str(file))} {others}"
    conf = SparkConf().setMaster(master).setAll(list(settings.items()))  # before there is a JVM, which gets them later
    try:
        return SparkContext(conf=conf, gateway=launch_gateway())  # type: ignore[no-untyped-call]
    finally:
        file.unlink()
