"""Debian's logrotate, which rotates the logs of a test when the test says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

from heron_testing_servers.install import debian_programs, installed, with_libraries

__all__ = ["FIXTURES", "Logrotate"]

FIXTURES = ("logrotate",)

_CONF = """
{pattern} {{
    rotate {keep}
    {directives}
    missingok
}}
"""


class Logrotate:
    """The program. Nothing runs before `rotate`."""

    def __init__(self, folder: Path) -> None:
        """Install it into the cache.

        Raises:
            ServerNotInstalledError: when it is not available.
        """
        program = installed("logrotate-debian", debian_programs("logrotate"))
        self._command = [*with_libraries(program), str(program / "usr" / "sbin" / "logrotate"), "--force"]
        self._folder = folder

    def start(self) -> None:
        """Nothing to start."""

    def kill(self) -> None:
        """Nothing to end."""

    def rotate(self, pattern: Path, *directives: str, keep: int = 20) -> None:
        """Rotate all files that match a pattern, with directives of its configuration; wait for its end.

        Raises:
            AssertionError: when it fails.
        """
        conf = self._folder / "logrotate.conf"
        text = _CONF.format(pattern=pattern, keep=keep, directives="\n    ".join(directives))
        conf.write_text(text, encoding="utf-8")
        command = [*self._command, "--state", str(self._folder / "state"), str(conf)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stderr  # for tests
