"""How a main ended that has submitted nothing, and what the user can do about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from heron_compat_storm.jar_file import JarFile

__all__ = ["CAPTURE", "MainEnd", "no_class", "no_such_class", "why_nothing"]

CAPTURE = "heron.storm.Capture"
"""The class that calls main."""

_OF_CAPTURE = (f"at {CAPTURE}.", "at java.base/jdk.internal.reflect.", "at java.base/java.lang.reflect.")
_TRACE_LINES = 8
_NEAREST, _LIKE = 3, 0.6  # classes, and how much of a name has to be the same
_NO_CLASS = ("NoClassDefFoundError", "ClassNotFoundException")


@dataclass(frozen=True, slots=True)
class MainEnd:
    """How main ended.

    Attributes:
        code: the exit code of its JVM.
        returned: false if it has ended the JVM.
        late: whether the limit of time has ended it.
        exception: the class of what it has thrown, or "".
        message: the message of that.
        trace: the stack trace of that.
    """

    code: int = 0
    returned: bool = True
    late: bool = False
    exception: str = ""
    message: str = ""
    trace: str = ""

    @classmethod
    def read(cls, path: Path, code: int) -> MainEnd:
        """Return what the JVM has written to `path`, where it has written something."""
        if not path.is_file():
            return cls(code, returned=False)
        found: dict[str, object] = json.loads(path.read_bytes())
        texts = (str(found.get(name) or "") for name in ("exception", "message", "trace"))
        return cls(code, True, bool(found.get("late")), *texts)


def why_nothing(place: str, content: JarFile, command: Sequence[str], end: MainEnd, limit_s: float) -> str:
    """Return the message for a main, of the class and arguments `command`, that has submitted nothing."""
    if end.exception:
        return _exception(place, content, command, end)
    if end.late:
        return f"{place}: main submits no topology within {limit_s:g} s; call StormSubmitter.submitTopology"
    what = "main returned without StormSubmitter.submitTopology"
    if not end.returned:
        how = f"signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
        what = f"main ended its JVM with {how} before it submitted a topology"
    return f"{place}: {what}; {_arguments(command)}"


def no_such_class(content: JarFile, name: str) -> str:
    """Return the message for a class that the jar does not have: the classes with the nearest names, at most three."""
    close = _nearest_classes(name, content.programs())
    found = f"nearest: {', '.join(map(repr, close))}; " if close else ""
    jar = content.path
    return f"no class {name!r} in {jar}; {found}`heron plan {jar.name}` lists those with a main method that use Storm"


def no_class(content: JarFile) -> str:
    """Return the message for a jar without a class behind it: all classes that may be meant."""
    jar, programs = content.path, content.programs()
    found = "".join(f"\n    {each}" for each in programs) or " none"
    what = f"no class behind {jar}: name the class whose main submits the topology, {jar.name} package.Class [ARGS]"
    return f"{what}; classes with a main method that use Storm:{found}"


def _nearest_classes(name: str, programs: Sequence[str]) -> list[str]:
    """Compare the whole names, and the names without the packages, which the user may have left out."""
    likeness = {each: max(_ratio(name, each), _ratio(_simple(name), _simple(each))) for each in programs}
    found = sorted(programs, key=lambda each: -likeness[each])
    return [each for each in found[:_NEAREST] if likeness[each] >= _LIKE]


def _ratio(name: str, other: str) -> float:
    return SequenceMatcher(None, name.lower(), other.lower(), autojunk=False).ratio()


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _exception(place: str, content: JarFile, command: Sequence[str], end: MainEnd) -> str:
    kind, message = end.exception.rpartition(".")[2], end.message
    if kind == "ClassNotFoundException" and message == command[0]:
        return no_such_class(content, command[0])
    if kind == "NoSuchMethodException" and message.startswith(f"{command[0]}.main"):
        what = "has no method `public static void main(String[])`; name the class that submits the topology"
    elif "LocalCluster" in message:
        what = f"main starts a LocalCluster, which runs a topology inside its own JVM; {_arguments(command)}"
    elif kind in _NO_CLASS:
        what = f"{_missing_class(message.replace('/', '.'))}{_trace(end)}"
    elif kind == "UnsupportedClassVersionError":
        what = f"{message}; set JAVA_HOME to a newer Java"
    else:
        remedy = f"correct it, or {_arguments(command)}"
        what = f"main raised {end.exception}: {message or 'no message'}; {remedy}{_trace(end)}"
    return f"{place}: {what}"


def _missing_class(name: str) -> str:
    old = "the topology is for Storm before 1.0, rebuild it for 2.x"
    remedy = old if name.startswith("backtype.storm") else "add its jar to the folder HERON_STORM_LIB"
    return f"main needs the class {name}, which no jar has; {remedy}"


def _arguments(command: Sequence[str]) -> str:
    given = " ".join(command[1:]) or "none"
    return f"give the arguments with which it submits to a cluster; given: {given}"


def _trace(end: MainEnd) -> str:
    lines = [each.strip() for each in end.trace.splitlines()]
    own = [each for each in lines[1:] if not each.startswith(_OF_CAPTURE)]
    return "".join(f"\n    {each}" for each in own[:_TRACE_LINES])
