"""The other systems, each tuned as its documentation advises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.findings import Pace
from bench.peers.java import java_command
from bench.peers.peer import PROGRAMS, Peer
from heron_testing_servers.install import maven_jars, python_packages

__all__ = ["FLINK", "FLINK_OPENS", "MORE_PEERS", "PEERS"]

_JVM_WARM_UP = 6  # times the usual warm-up: a JVM compiles first


def _python(program: str, *arguments: Callable[[Pace], object]) -> Callable[[Path, Path, Pace], Sequence[str]]:
    def command(folder: Path, words: Path, pace: Pace) -> Sequence[str]:
        python = folder / "bin" / "python"
        return [str(python), str(PROGRAMS / program), str(words), *(str(each(pace)) for each in arguments)]

    return command


def _java(program: str, *arguments: object, opens: Sequence[str] = ()) -> Callable[[Path, Path, Pace], Sequence[str]]:
    def command(folder: Path, words: Path, pace: Pace) -> Sequence[str]:
        times = (_JVM_WARM_UP * pace.warm_up_s, 2 * pace.window_s)
        return java_command(program, folder, words.with_name("classes"), str(words), *times, *arguments, opens=opens)

    return command


def _timed_python(program: str) -> Callable[[Path, Path, Pace], Sequence[str]]:
    return _python(program, lambda pace: pace.warm_up_s, lambda pace: pace.window_s)


_FLINK = "1.20.3"
FLINK_OPENS = ("java.util", "java.lang")
"""The packages of Java that its serializers look into."""
_STORM = "2.8.3"

FLINK = Peer(
    "flink",
    _FLINK,
    maven_jars(
        f"org.apache.flink:flink-streaming-java:{_FLINK}",
        f"org.apache.flink:flink-clients:{_FLINK}",
        f"org.apache.flink:flink-connector-datagen:{_FLINK}",
    ),
    _java("FlinkCount", 2, 100, opens=FLINK_OPENS),
)

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
    FLINK,
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
