"""Starts Spark for a pipeline, with the author's code on the workers."""

from __future__ import annotations

import logging
import os
import sys
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from heron_engine_spark.options import BatchOptions
from heron_spark_kit.spark_context import start_context

__all__ = ["author_folders", "spark_settings", "start_session"]

_log = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.python.name = org.apache.spark.api.python
logger.python.level = off
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = off
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
"""
"""Failures of tasks come back as exceptions; the log would repeat each one several times."""


def spark_settings(name: str, options: BatchOptions, log4j: Path) -> dict[str, str]:
    """Return the settings of Spark for a pipeline; `conf` of the profile has the last word."""
    settings = {
        "spark.app.name": f"heron {name}",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}",
        "spark.speculation": "false",  # two attempts would write to one sink at a time
        "spark.sql.adaptive.enabled": "false",  # the number of slots is fixed, and planning again takes time
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",  # a row has thousands of elements
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.ui.port": "0",
        "spark.ui.killEnabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if options.is_local:
        # Quick to start: the JVM only moves what Python has packed.
        settings["spark.driver.extraJavaOptions"] += " -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        settings |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    elif options.driver_host:
        settings["spark.driver.host"] = options.driver_host
    else:
        settings["spark.driver.bindAddress"] = "0.0.0.0"  # noqa: S104  # workers of a cluster connect to it
    if options.archives:
        settings["spark.archives"] = ",".join(options.archives)
    if options.py_files:
        settings["spark.submit.pyFiles"] = ",".join(options.py_files)
    return settings | options.spark_conf


def start_session(name: str, options: BatchOptions, scratch: Path) -> SparkSession:
    """Start the JVM and return its session. `scratch` is for files that Spark needs while it runs.

    Raises:
        Py4JError, PySparkRuntimeError, OSError: when Spark fails.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # it is not used here
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs each error that it hands on
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    folders = author_folders(sys.path, getattr(sys.modules["__main__"], "__file__", None))
    if options.is_local:
        os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    python = options.python or sys.executable
    context = start_context(options.master, python, spark_settings(name, options, log4j), scratch, _log)
    for number, folder in enumerate(() if options.is_local else folders):
        context.addPyFile(str(_zipped(folder, scratch / f"code-{number}.zip")))
    return SparkSession(context)


def author_folders(path: Sequence[str], file: str | None) -> list[Path]:
    """The folders of a module search path that the modules of the author's program come from."""
    if file is None:
        return []
    home = Path(file).resolve().parent
    return [Path(each) for each in dict.fromkeys(path) if each and Path(each).resolve() in (home, *home.parents)]


def _zipped(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            inside = file.relative_to(folder).parts
            if file.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in inside):
                archive.write(file, file.relative_to(folder))
    return target
