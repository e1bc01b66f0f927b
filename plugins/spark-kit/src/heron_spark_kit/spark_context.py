"""Starts Spark in this process: the JVM and the context. Settings reach the JVM in a file of Java properties."""

from __future__ import annotations

import logging
import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from heron.driver_kit.private_files import write_private
from heron_spark_kit.jvm_output import logged_start

__all__ = ["encode_properties", "start_context"]

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def start_context(
    master: str, python: str, settings: Mapping[str, str], scratch: Path, logger: logging.Logger | None = None
) -> SparkContext:
    """Start the JVM and return its context.

    pyspark itself would pass the settings on the command line of the JVM, which every user of the machine can read.
    Environment variables and a file are the only other ways for a context that is made in this process.

    With a `logger`, what the JVM writes while it starts goes there.

    Raises:
        Py4JError, PySparkRuntimeError, OSError: when Spark fails.
    """
    os.environ["PYSPARK_PYTHON"] = python
    tempfile.tempdir = str(scratch)  # pyspark and its JVM exchange files there
    os.environ["SPARK_SUBMIT_OPTS"] = f'{os.environ.get("SPARK_SUBMIT_OPTS", "")} "-Djava.io.tmpdir={scratch}"'
    if master.startswith("local"):  # otherwise its page would listen on every address of this machine
        os.environ.setdefault("SPARK_LOCAL_IP", settings["spark.driver.bindAddress"])
    file = scratch / "settings.properties"
    write_private(file, encode_properties({"spark.master": master, **settings}))
    others = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--load-spark-defaults --properties-file {shlex.quote(str(file))} {others}"
    conf = SparkConf().setMaster(master).setAll(list(settings.items()))  # made before the JVM, which gets it later
    try:
        with logged_start(logger) if logger is not None else nullcontext() as output:
            streams = {"stdout": output, "stderr": output}
            gateway = launch_gateway(popen_kwargs=streams)  # type: ignore[no-untyped-call]
        return SparkContext(conf=conf, gateway=gateway)
    finally:
        file.unlink()


def encode_properties(settings: Mapping[str, str]) -> bytes:
    """Return the settings as a file of Java properties, one line each; values may hold any character."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items()).encode("ascii")


def _escaped(text: str) -> str:
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in " =:#!":
        return f"\\{character}"
    if " " < character < "\x7f":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
