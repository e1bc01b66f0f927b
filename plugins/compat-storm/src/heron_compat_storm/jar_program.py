"""Makes a Python program of the jar of a topology.

The program is a folder: a short Python file, what main has submitted, the jar, and Storm's jars. It travels as any
other program, and an instance needs only the settings of its component.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from heron.errors import TopologyError, UsageError, known, nearest
from heron_compat_storm.jar_file import JarFile
from heron_compat_storm.main_end import no_class, no_such_class
from heron_compat_storm.main_run import MainCall, Submission, run_main
from heron_compat_storm.storm_libraries import storm_libraries
from heron_compat_storm.translation import CLASS_PATH, SUBMITTED, TOPOLOGY, heron_topology

__all__ = ["PROGRAM", "write_program"]

PROGRAM = "storm_topology.py"

_TEXT = '''"""The topology that {main} has submitted; heron-compat-storm has written this file."""

if __name__ == "__main__":
    from heron_compat_storm.translation import submit_captured

    submit_captured(__file__)
'''


def write_program(path: Path, name: str | None, arguments: Sequence[str], folder: Path) -> Path:
    """Write the program of the jar at `path` into `folder`; return its file.

    `MainCall.parse` describes `arguments`.

    Raises:
        UsageError: when the class is missing, or `name` is none of the topologies that main submits.
        ConfigError: when Storm's jars are not found, or a configuration key has a wrong value.
        TopologyError: when main fails, or its topology cannot run on Heron.
        JavaError: when there is no Java.
    """
    content = JarFile(path)
    call = MainCall.parse(arguments, str(path))
    if not call.command:
        raise UsageError(no_class(content))
    libraries = storm_libraries(path, content)
    if not content.has_class(call.main):
        raise UsageError(no_such_class(content, call.main))
    out = folder / ".captured"  # the command removes the folder, however this process ends
    out.mkdir()
    found = _chosen(run_main(path, content, libraries, call, out), name, path)
    shutil.copyfile(found.topology, folder / TOPOLOGY)
    shutil.copyfile(found.submitted, folder / SUBMITTED)
    shutil.rmtree(out)
    content.write_resources(folder)
    for pattern, jars in zip(CLASS_PATH, (libraries, (path,)), strict=True):
        place = (folder / pattern).parent
        place.mkdir()
        for each in jars:
            shutil.copyfile(each, place / f"{each.stem}.jar")  # a class path finds no .JAR
    heron_topology(folder)  # what is wrong is told here, without a traceback of the program
    program = folder / PROGRAM
    program.write_text(_TEXT.format(main=call.main), encoding="utf-8")
    return program


def _chosen(found: Sequence[Submission], name: str | None, path: Path) -> Submission:
    names = [each.name for each in found]
    if name is None and len(found) > 1:
        msg = f"{path}: main submits {len(found)} topologies, {known(names)}; choose one: {path.name}:{min(names)}"
        raise TopologyError(msg)
    for each in found:
        if name in (None, each.name):
            return each
    msg = f"{path}: main submits no topology {name!r}{nearest(name, names)}; it submits: {known(names)}"
    raise UsageError(msg)
