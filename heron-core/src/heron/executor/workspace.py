"""A container's directory in the run directory: made at the start, gone at the end.

RUN/cN/            0700: sockets, spec files of the processes, the unpacked package in pkg/
RUN/cN.error       one line that says why the last attempt of this container ended before it ran
RUN/cN.*           what else whoever started the executor has put there for this container; he removes it, unless he is
                   gone: then the executor does
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.driver_kit.private_files import make_private_dir
from heron.errors import StateError
from heron.ipc.endpoint import container_dir
from heron.kernel.package import unpack
from heron.spi.driver import DriverRef
from heron.spi.uploader import Uploader

__all__ = ["Workspace"]


class Workspace:
    """The directory of one container."""

    def __init__(self, run_dir: Path, container_id: int) -> None:
        self.run_dir = run_dir
        self.path = container_dir(run_dir, container_id)
        self.package_dir = self.path / "pkg"
        self._started_by = os.getppid()
        self._error = run_dir / f"c{container_id}.error"

    def make(self) -> None:
        """Makes it new and empty, whatever an attempt that was killed has left.

        Raises:
            StateError: when it cannot be made.
        """
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            make_private_dir(self.run_dir)
            self._error.unlink(missing_ok=True)
            self.path.mkdir(mode=0o700)
        except OSError as error:
            msg = f"container directory {self.path} cannot be made: {error.strerror}"
            raise StateError(msg) from error

    def fetch_package(self, uri: str, ref: DriverRef) -> None:
        """Downloads and unpacks the topology's package.

        Raises:
            PackageError: when it cannot be fetched, or is not what its manifest says.
        """
        package = self.path / "package"
        open_driver(ref, Uploader).download(uri, package)
        unpack(package, self.package_dir)
        package.unlink(missing_ok=True)

    def leave_error(self, reason: str) -> None:
        """Says for the scheduler why this container did not come to run."""
        line = " ".join(reason.split())
        try:
            self._error.write_text(f"{line}\n", encoding="utf-8")
        except OSError:
            return  # the log has it too

    def clear(self) -> None:
        """Removes it; the run directory stays for the next attempt."""
        shutil.rmtree(self.path, ignore_errors=True)
        if os.getppid() != self._started_by:
            self._clear_beside()

    def _clear_beside(self) -> None:
        for left in self.run_dir.glob(f"{self.path.name}.*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with suppress(OSError):
                    left.unlink()

    def remove(self) -> None:
        """Removes it, and the run directory with it when no other container has one there."""
        self.clear()
        if any(each.is_dir() for each in self.run_dir.glob("c*")):
            return
        try:
            for left in self.run_dir.glob("c*.error"):
                left.unlink(missing_ok=True)
            self.run_dir.rmdir()  # fails, as it should, when a container came in the meantime
        except OSError:
            return
