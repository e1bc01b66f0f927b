"""Servers that are built from their Go modules: minutes, once per user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from heron.testing.servers.install import ServerNotInstalledError, run_command

__all__ = ["go_program"]

_LEAST = (1, 24)
_USUAL = Path("/usr/local/go/bin/go")  # where Go's own archive goes; not on the PATH of every shell
_BUILD_S = 1800.0  # 3 to 5 minutes on two idle cores


def go_program(package: str, version: str) -> Callable[[Path], None]:
    """An `install` that builds the program of a Go package into the folder ``bin``.

    It needs Go 1.24 or newer, on the PATH or in ``/usr/local/go``. The Go module proxy is the one that Go is set to.
    """

    def install(folder: Path) -> None:
        environment = {**os.environ, "GOBIN": str(folder / "bin"), "CGO_ENABLED": "0", "GOFLAGS": "-trimpath"}
        run_command([_go(), "install", f"{package}@{version}"], folder, environment, _BUILD_S)

    return install


def _go() -> str:
    found = shutil.which("go") or (str(_USUAL) if _USUAL.exists() else None)
    if found is None:
        msg = f"it is built with Go, and there is none; install Go {_text(_LEAST)} or newer"
        raise ServerNotInstalledError(msg)
    told = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    has = re.match(r"go(\d+)\.(\d+)", told)
    if has is None or (int(has[1]), int(has[2])) < _LEAST:
        msg = f"it is built with Go, and {found} is {told.strip() or 'unknown'}; install Go {_text(_LEAST)} or newer"
        raise ServerNotInstalledError(msg)
    return found


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
