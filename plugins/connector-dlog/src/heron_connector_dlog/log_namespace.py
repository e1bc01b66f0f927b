"""How the client reaches the logs of a namespace, and the Java that runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from heron.errors import UsageError
from heron_runtime_jvm.class_path import expanded_class_path
from heron_runtime_jvm.compiled_classes import compiled_classes
from heron_runtime_jvm.java_program import find_java

__all__ = ["LogNamespace", "Options"]

Options: TypeAlias = Mapping[str, str | int | bool]

_SOURCES = Path(__file__).parent / "java" / "heron" / "dlog"
_MAIN = "heron.dlog.Main"
_SCHEME = "distributedlog"
_RESERVED = frozenset({"writeLockEnabled", "disableRollingOnLogSegmentError"})


@dataclass(frozen=True)
class LogNamespace:
    """A namespace of logs; picklable. Its text has no option, because an option may be a password.

    Args:
        uri: ``distributedlog://ZOOKEEPER/PATH``, such as ``distributedlog://zk1:2181;zk2:2181/messaging``.
        class_path: the jars of ``distributedlog-core`` and of what it needs, on each machine that runs tasks:
            ``FOLDER/*``, or a list of files, folders and ``FOLDER/*``.
        options: configuration of the client, such as ``{"bkcEnsembleSize": 3}``; names that begin with ``bkc.`` are
            those of BookKeeper's client. A function that returns it is called in each task.
        java: the program; without it that of ``JAVA_HOME``, else that of the ``PATH``. A JDK of 11 or newer.
        java_options: options of the JVM.

    Raises:
        UsageError: when an argument is wrong.
    """

    uri: str
    class_path: str | Sequence[str]
    options: Options | Callable[[], Options] = field(default_factory=dict, repr=False)
    java: str = "java"
    java_options: Sequence[str] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")

    def __post_init__(self) -> None:
        scheme, _, rest = self.uri.partition("://")
        servers, _, path = rest.partition("/")
        if scheme.partition("-")[0] != _SCHEME or not servers or not path:
            msg = f"LogNamespace: uri={self.uri!r} is not {_SCHEME}://HOST:PORT/PATH"
            raise UsageError(msg)
        if not self.class_path:
            msg = "LogNamespace: class_path is empty; name the folder with the jars of distributedlog-core: FOLDER/*"
            raise UsageError(msg)
        if not callable(self.options):
            self._checked(self.options)

    def given_options(self) -> Options:
        """The options of now.

        Raises:
            UsageError: when one of them is one that the connector sets itself.
        """
        return self._checked(self.options() if callable(self.options) else self.options)

    def command(self) -> list[str]:
        """What starts the client. Compiles its classes where this user has not done so before, in about 2 s.

        Raises:
            JavaError: when there is no JDK, or jars are missing.
        """
        java = find_java(self.java)
        entries = [self.class_path] if isinstance(self.class_path, str) else list(self.class_path)
        jars = expanded_class_path(entries, Path.cwd())
        classes = compiled_classes("dlog", sorted(_SOURCES.glob("*.java")), jars, java)
        path = os.pathsep.join(map(str, (classes, *jars)))
        return [str(java.path), *self.java_options, "-cp", path, _MAIN]

    @staticmethod
    def _checked(options: Options) -> Options:
        for name in sorted(_RESERVED.intersection(options)):
            msg = f"LogNamespace: options: {name!r} is set by the connector itself; remove it"
            raise UsageError(msg)
        return options
