"""Components that an instance cannot run by itself: a command, a Java class, or a class with a protocol of its own.

A component that nothing installed can run is refused when the topology class is made, with its name.
`heron_compat_streamparse.child_component` says what runs commands.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NoReturn

from heron.author_text import short_text
from heron.errors import TopologyError

__all__ = ["ForeignKind", "ForeignRuntime", "command_of", "java_of", "refuse_foreign"]


class ForeignKind(enum.Enum):
    """What such a component needs."""

    CHILD = "a child process with Storm's multilang protocol"
    JAVA = "a JVM"


@dataclass(frozen=True, slots=True)
class ForeignRuntime:
    """Why an instance cannot run a component.

    Attributes:
        kind: what it needs.
        reason: what the author has written that needs it.
        command: the words of the command; none for Java.
    """

    kind: ForeignKind
    reason: str
    command: tuple[str, ...] = ()


def command_of(command: object, script: object, place: str) -> ForeignRuntime:
    """Return the runtime of a shell component. As in Storm, `script` is one word, whatever characters it has.

    Raises:
        TopologyError: when there is no command, or the script is missing.
    """
    if not isinstance(command, str) or not command:
        msg = f"{place}: command {short_text(command)} is not a program; give command='node', script='bolt.js'"
        raise TopologyError(msg)
    if not isinstance(script, str):
        msg = f"{place}: script {short_text(script)} is not text; give '' for a command without arguments"
        raise TopologyError(msg)
    return ForeignRuntime(ForeignKind.CHILD, f"it is the command {command!r}", (command, script))


def java_of(full_class_name: object, serialized_java: object, place: str) -> ForeignRuntime:
    """Return the runtime of a component in Java.

    Raises:
        TopologyError: when neither class nor object is given.
    """
    if serialized_java is None and not (isinstance(full_class_name, str) and full_class_name):
        msg = f"{place}: full_class_name {short_text(full_class_name)} names no class; give 'package.Class'"
        raise TopologyError(msg)
    what = f"the class {full_class_name}" if serialized_java is None else "a serialised object"
    return ForeignRuntime(ForeignKind.JAVA, f"it is {what} in Java")


def refuse_foreign(place: str, runtime: ForeignRuntime) -> NoReturn:
    """Refuse the component that `place` names.

    Raises:
        TopologyError: always.
    """
    remedy = {
        ForeignKind.CHILD: "install heron-runtime-multilang, or use only the documented methods of Bolt and Spout",
        ForeignKind.JAVA: "replace it by a component in Python",
    }
    msg = f"{place}: {runtime.reason}, which needs {runtime.kind.value}; {remedy[runtime.kind]}"
    raise TopologyError(msg)
