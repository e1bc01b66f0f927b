"""The memory of a transfer, measured in another process: ``… uploader_weight ENTRY OPTIONS PACKAGE TARGET``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.spi.driver import Driver, DriverRef
from heron.spi.uploader import Uploader

__all__ = ["peak_bytes"]

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def peak_bytes(driver: type[Driver], options: dict[str, object], size_bytes: int, folder: Path) -> int:
    """Return the largest resident memory, in bytes, of a process that uploads, downloads and removes a package.

    The value includes the interpreter and all libraries. The package has `size_bytes` bytes. The function writes it
    into `folder` and removes it.

    Raises:
        AssertionError: when the process fails or the downloaded file has another size.
    """
    package, target = folder / "heavy.tar.gz", folder / "heavy-target"
    with package.open("wb") as file:  # sparse: zeros weigh as much as anything else on the way
        file.truncate(size_bytes)
        file.write(b"begin")
    entry = f"{driver.__module__}:{driver.__qualname__}"
    command = [sys.executable, "-m", __name__, entry, json.dumps(options), str(package), str(target)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert target.stat().st_size == size_bytes
    finally:
        package.unlink()
        target.unlink(missing_ok=True)
    return int(ran.stdout)


def _main(entry: str, options: str, package: str, target: str) -> None:
    uploader = open_driver(DriverRef("uploader", "weighed", entry, json.loads(options)), Uploader)
    uri = uploader.upload(Path(package), "heavy")
    uploader.download(uri, Path(target))
    uploader.undo(uri)
    found = _PEAK.search(Path("/proc/self/status").read_text(encoding="ascii"))
    sys.stdout.write(str(int(found[1]) * 1024 if found else 0))


if __name__ == "__main__":
    _main(*sys.argv[1:])
