"""The libraries of Apache Storm that spouts and bolts in Java are compiled and run with, and a compiler."""

from __future__ import annotations

from pathlib import Path

from heron_testing_servers.install import installed, maven_jars, system_program

__all__ = ["FIXTURES", "StormClient"]

FIXTURES = ("storm_client",)

_STORM = "2.8.3"


class StormClient:
    """The jars and the compiler. Nothing runs: `start` and `kill` do nothing.

    Attributes:
        jars: the folder of storm-client's jar and of those that it needs.
    """

    def __init__(self, folder: Path) -> None:
        """Install everything.

        Raises:
            ServerNotInstalledError: when something is not available.
        """
        system_program("javac", "default-jdk-headless")
        self.jars = installed(f"storm-client-{_STORM}", maven_jars(f"org.apache.storm:storm-client:{_STORM}")) / "lib"

    def start(self) -> None:
        """Nothing to start."""

    def kill(self) -> None:
        """Nothing to kill."""
