"""Runs the main method of a topology in a JVM, and returns what it submits.

The class `heron.storm.Capture` calls main with an object in the place of Storm's Nimbus. So Storm's own StormSubmitter
checks the configuration, and nothing is sent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from heron.errors import TopologyError, UsageError
from heron_compat_storm.jar_file import JarFile
from heron_compat_storm.main_end import CAPTURE, MainEnd, why_nothing
from heron_runtime_jvm import STORM_LOGGERS, compiled_classes, find_java
from heron_runtime_multilang.bound_command import bound_command, bound_environment

__all__ = ["MAIN_LIMIT_S", "MainCall", "Submission", "run_main"]

MAIN_LIMIT_S = 120.0  # a JVM on a busy machine takes 10 s; mains read files and ask servers

_SOURCE = Path(__file__).parent / "java" / "Capture.java"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # it starts fast
_SPARE_S = 60.0
_OPTION, _NO_OPTIONS = "-c", "--"


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission: the Thrift document, and JSON with the name, the configuration and more."""

    topology: Path
    submitted: Path
    name: str


@dataclass(frozen=True, slots=True)
class MainCall:
    """A class with its arguments, `command`, and ``KEY=VALUE`` that go before the configuration of main."""

    command: Sequence[str]
    options: Sequence[str] = ()

    @classmethod
    def parse(cls, arguments: Sequence[str], place: str) -> MainCall:
        """Divide what stands behind a jar; `command` may be empty.

        As with `storm jar`, each ``-c KEY=VALUE`` is an option, wherever it stands. What stands behind ``--`` goes to
        main as it is.

        Raises:
            UsageError: when an option has no value.
        """
        options: list[str] = []
        command: list[str] = []
        words = iter(arguments)
        for each in words:
            if each == _NO_OPTIONS:
                command += words
            elif each == _OPTION:
                options.append(_key_and_value(next(words, ""), place))
            else:
                command.append(each)
        return cls(command, options)

    @property
    def main(self) -> str:
        """The class."""
        return self.command[0]


def run_main(jar: Path, content: JarFile, libraries: Sequence[Path], call: MainCall, out: Path) -> list[Submission]:
    """Run a main; return its submissions, at least one.

    Raises:
        TopologyError: when main fails, or submits nothing; says why.
        JavaError: when there is no Java for it.
    """
    place = f"{jar}: {call.main}"
    java = find_java("java")
    class_path = [*libraries, jar]
    classes = compiled_classes("capture", [_SOURCE, STORM_LOGGERS], libraries or [jar], java, _say_compiling)
    uploaded = out / "uploaded.jar"
    uploaded.write_bytes(b"x")  # StormSubmitter refuses to work without a file, and to send an empty one
    joined = os.pathsep.join(str(each) for each in (classes, *class_path))
    properties = [f"-Dstorm.jar={uploaded}", f"-Dstorm.options={','.join(map(quote, call.options))}"]
    start = bound_command([str(java.path), *_OPTIONS, *properties, "-cp", joined, CAPTURE])
    try:
        ended = subprocess.run(
            [*start, str(out), f"{MAIN_LIMIT_S:g}", *call.command],
            env=bound_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),  # Storm writes its log there; the output of the command stays machine-readable
            timeout=MAIN_LIMIT_S + _SPARE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{place}: its JVM does not end {error.timeout:g} s after its start; correct its main"
        raise TopologyError(msg) from error
    found = [_submission(each) for each in sorted(out.glob("[0-9]*.json"), key=lambda each: int(each.stem))]
    if not found:
        end = MainEnd.read(out / "end.json", ended.returncode)
        raise TopologyError(why_nothing(place, content, call.command, end, MAIN_LIMIT_S))
    return found


def _say_compiling() -> None:
    sys.stderr.write("heron: compiling Java classes, once for a version of Java and of Storm\n")
    sys.stderr.flush()


def _key_and_value(given: str, place: str) -> str:
    key, sign, _ = given.partition("=")
    if not key or not sign:
        msg = (
            f"{place}: {_OPTION} {given!r:.80} has no value; give {_OPTION} KEY=VALUE, or put one more {_NO_OPTIONS} "
            "in front of what belongs to main"
        )
        raise UsageError(msg)
    return given


def _submission(path: Path) -> Submission:
    return Submission(path.with_suffix(".thrift"), path, str(json.loads(path.read_bytes())["name"]))
