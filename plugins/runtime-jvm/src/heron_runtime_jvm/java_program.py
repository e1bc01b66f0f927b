"""The Java of a machine: where it is looked for, and which version it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from heron.errors import UserCodeError

__all__ = ["JavaError", "JavaProgram", "find_java"]

_OLDEST = 11
_ANSWER_S = 60.0  # `java -version` takes 0.1 s; a busy machine needs much longer
_REMEDY = f"install a JDK of Java {_OLDEST} or newer (Debian: openjdk-17-jdk-headless), or set JAVA_HOME"


class JavaError(UserCodeError):
    """Java is missing, is too old, or refuses what it was given."""

    trace = ""  # the message has all


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """A program `java`, its version as it shows it, and the first number of it."""

    path: Path
    version: str
    release: int

    def compiler(self) -> Path:
        """Return the compiler beside it.

        Raises:
            JavaError: when there is none: it is a run-time environment only.
        """
        beside = self.path.resolve().with_name("javac")
        if beside.is_file():
            return beside
        msg = f"Java {self.version} at {self.path} has no compiler, looked for at {beside}; {_REMEDY}"
        raise JavaError(msg)


def find_java(program: str = "java") -> JavaProgram:
    """Return the Java of this machine: `program` if it names a file, else that of ``JAVA_HOME``, else of the ``PATH``.

    Raises:
        JavaError: when there is none, it does not run, or it is too old.
    """
    path = _path(program)
    try:
        ran = subprocess.run(
            [path, "-version"], capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{path} does not run: {error}; {_REMEDY}"
        raise JavaError(msg) from error
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', ran.stderr)
    if ran.returncode != 0 or found is None:
        answer = short_lines(ran.stderr) or f"exit code {ran.returncode}"
        msg = f"{path} -version does not show a version of Java, but: {answer}; {_REMEDY}"
        raise JavaError(msg)
    if int(found[2]) < _OLDEST:
        msg = f"{path} is Java {found[1]}, which is too old; {_REMEDY}"
        raise JavaError(msg)
    return JavaProgram(path, found[1], int(found[2]))


def short_lines(output: str) -> str:
    """The first lines of what a program of Java has written, for an error."""
    return "\n  ".join(line[:300] for line in output.strip().splitlines()[:20])


def _path(program: str) -> Path:
    if os.sep in program:
        places = [Path(program).expanduser()]
    else:
        home = os.environ.get("JAVA_HOME")
        places = [Path(home, "bin", program)] if home else []
        places += [Path(found)] if (found := shutil.which(program)) else []
    for each in places:
        if each.is_file() and os.access(each, os.X_OK):
            return each
    where = f"JAVA_HOME ({os.environ.get('JAVA_HOME') or 'not set'}) and PATH ({os.environ.get('PATH', '')})"
    looked = str(places[0]) if os.sep in program else where
    msg = f"no Java: {program!r} was looked for in {looked}; {_REMEDY}"
    raise JavaError(msg)
