"""Storm's libraries for components in other languages, unmodified, with the interpreters and compilers for them."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from heron_testing_servers.install import (
    ServerNotInstalledError,
    installed,
    maven_jars,
    python_packages,
    system_program,
)

__all__ = ["FIXTURES", "StormLibraries"]

FIXTURES = ("storm_libraries",)

_STORM = "2.8.3"
_ARTIFACTS = tuple(f"org.apache.storm:multilang-{each}:{_STORM}" for each in ("python", "javascript", "ruby"))
_PYTHON = ("streamparse==5.0.1", "pystorm==3.1.4", "msgpack==1.2.4", "setuptools<81")
_USUAL_GO = Path("/usr/local/go/bin/go")
_BUILD_S = 600.0


class StormLibraries:
    """The files and programs. Nothing runs: `start` and `kill` do nothing.

    Attributes:
        node: the program ``node``.
        ruby: the program ``ruby``.
        streamparse_run: the command that runs a component of streamparse or pystorm.
    """

    def __init__(self, folder: Path) -> None:
        """Install everything.

        Raises:
            ServerNotInstalledError: when something is not available.
        """
        self._jars = installed(f"storm-multilang-{_STORM}", maven_jars(*_ARTIFACTS)) / "lib"
        place = installed(f"streamparse-{_PYTHON[0].partition('==')[2]}", python_packages(*_PYTHON))
        self.streamparse_run = [str(place / "bin" / "python"), "-m", "streamparse.run"]
        self.node = system_program("node", "nodejs")
        self.ruby = system_program("ruby", "ruby")
        self._folder = folder

    def start(self) -> None:
        """Nothing to start."""

    def kill(self) -> None:
        """Nothing to kill."""

    def write_sources(self, folder: Path) -> None:
        """Write ``storm.py``, ``storm.js`` and ``storm.rb`` into a folder."""
        for jar in self._jars.glob("multilang-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.startswith("resources/storm."):
                        (folder / Path(name).name).write_bytes(archive.read(name))

    def build(self, source: Path, program: Path) -> None:
        """Compile a program of one file, in Go or C++.

        Raises:
            ServerNotInstalledError: when there is no compiler, or it refuses the file.
        """
        if source.suffix == ".go":
            go = shutil.which("go") or str(_USUAL_GO)
            command = [go, "build", "-o", str(program), str(source)]
        else:
            command = [system_program("g++", "g++"), "-O2", "-Wall", "-Werror", "-o", str(program), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_BUILD_S)
        except (OSError, subprocess.SubprocessError) as error:
            msg = f"`{' '.join(command)}` failed: {getattr(error, 'stderr', '') or error}"
            raise ServerNotInstalledError(msg) from error
