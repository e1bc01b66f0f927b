"""The other systems, each tuned as its documentation advises."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.findings import Pace
from bench.peers.peer import PROGRAMS, Peer
from bench.records import BenchError
from servers.install import maven_jars, python_packages

__all__ = ["MORE_PEERS", "PEERS"]

_JVM_WARM_UP = 6  # times the usual warm-up: a JVM compiles first


def _python(program: str, *arguments: Callable[[Pace], object]) -> Callable[[Path, Path, Pace], Sequence[str]]:
    def command(folder: Path, words: Path, pace: Pace) -> Sequence[str]:
        python = folder / "bin" / "python"
        return [str(python), str(PROGRAMS / program), str(words), *(str(each(pace)) for each in arguments)]

    return command


def _java(program: str, *arguments: object, opens: Sequence[str] = ()) -> Callable[[Path, Path, Pace], Sequence[str]]:
    def command(folder: Path, words: Path, pace: Pace) -> Sequence[str]:
        classes, jars = words.with_name("classes"), str(folder / "lib" / "*")
        source = str((PROGRAMS / program).with_suffix(".java"))
        done = subprocess.run(
            ["javac", "-d", str(classes), "-cp", jars, source], capture_output=True, text=True, check=False
        )
        if done.returncode:
            msg = f"{program}.java does not compile: {done.stderr.strip()[-1000:]}"
            raise BenchError(msg)
        times = (_JVM_WARM_UP * pace.warm_up_s, 2 * pace.window_s)
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in opens]
        return [
            *("java", "-Xmx2g", *opened, "-cp", os.pathsep.join([str(classes), jars])),
            *(program, str(words), *map(str, times), *map(str, arguments)),
        ]

    return command


def _timed_python(program: str) -> Callable[[Path, Path, Pace], Sequence[str]]:
    return _python(program, lambda pace: pace.warm_up_s, lambda pace: pace.window_s)


_FLINK = "1.20.3"
_STORM = "2.8.3"

PEERS: Sequence[Peer] = (
    Peer(
        "bytewax",
        "0.21.1",
        python_packages("bytewax==0.21.1"),
        _timed_python("bytewax_count.py"),
    ),
    Peer(
        "pathway",
        "0.33.0",
        python_packages("pathway==0.33.0"),
        _python("pathway_count.py", lambda pace: int(50 * pace.window_s)),  # blocks: a million words in four seconds
    ),
    Peer(
        "flink",
        _FLINK,
        maven_jars(
            f"org.apache.flink:flink-streaming-java:{_FLINK}",
            f"org.apache.flink:flink-clients:{_FLINK}",
            f"org.apache.flink:flink-connector-datagen:{_FLINK}",
        ),
        _java("FlinkCount", 2, 100, opens=("java.util", "java.lang")),
    ),
    Peer("storm", _STORM, maven_jars(f"org.apache.storm:storm-server:{_STORM}"), _java("StormCount", "false")),
    Peer(
        "storm",
        _STORM,
        maven_jars(f"org.apache.storm:storm-server:{_STORM}"),
        _java("StormCount", "true"),
        subject="storm, acked",
    ),
)

MORE_PEERS: Sequence[Peer] = (
    Peer("streamz", "0.6.5", python_packages("streamz==0.6.5"), _timed_python("streamz_count.py")),
)
"""These run only when they are named."""
