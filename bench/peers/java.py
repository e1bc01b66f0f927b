"""Compiles the Java program of a peer, and makes the command that runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.peers.peer import PROGRAMS
from bench.records import BenchError

__all__ = ["java_command"]


def java_command(program: str, folder: Path, classes: Path, *arguments: object, opens: Sequence[str] = ()) -> list[str]:
    """Compile a program, with those of `PROGRAMS` that it uses, into the folder `classes`, and return its command.

    Args:
        program: the name of its class.
        folder: the environment of the peer, with the libraries in ``lib``.
        classes: is made if it is absent.
        arguments: of the program.
        opens: packages of ``java.base`` that libraries look into.

    Raises:
        BenchError: when it does not compile.
    """
    jars = str(folder / "lib" / "*")
    source = str((PROGRAMS / program).with_suffix(".java"))
    done = subprocess.run(
        ["javac", "-d", str(classes), "-cp", jars, "-sourcepath", str(PROGRAMS), source],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        msg = f"{program}.java does not compile: {done.stderr.strip()[-1000:]}"
        raise BenchError(msg)
    opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in opens]
    path = os.pathsep.join([str(classes), jars])
    return ["java", "-Xmx2g", *opened, "-cp", path, program, *map(str, arguments)]
