"""Another time of day for a process of a test, as on a machine with a wrong clock."""

from __future__ import annotations

from heron_testing_servers.install import ServerNotInstalledError, debian_package, installed

__all__ = ["shifted_clock"]


def shifted_clock(by: str) -> dict[str, str]:
    """Return the environment variables that shift the wall clock of a process (``+1h``); monotonic time stays.

    It installs Debian's libfaketime into the cache. Programs written in Go do not notice the shift.

    Raises:
        ServerNotInstalledError: when it is not available.
    """
    folder = installed("faketime-debian", debian_package("libfaketime"))
    library = next(iter(folder.glob("usr/lib/**/libfaketime.so.1")), None)
    if library is None:
        msg = f"libfaketime is not in {folder}; remove that folder"
        raise ServerNotInstalledError(msg)
    return {"LD_PRELOAD": str(library), "FAKETIME": by, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
