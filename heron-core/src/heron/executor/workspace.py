"""The directory of a container in the run directory: created at the start, removed at the end.

RUN/cN/            0700: sockets, spec files of the processes, the unpacked package in pkg/, those of new code in pkg-*/
RUN/cN.error       one line: why the last attempt of this container ended before it ran
RUN/cN.*           other files that the parent of the executor has put there for this container. The parent removes
                   them; if it is gone, the executor does
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from xxhash import xxh3_64_hexdigest

from heron.driver_kit.private_files import make_private_dir
from heron.errors import StateError
from heron.ipc.endpoint import container_dir
from heron.kernel.package import unpack
from heron.spi.uploader import Uploader

__all__ = ["Workspace"]


class Workspace:
    """The directory of one container."""

    def __init__(self, run_dir: Path, container_id: int) -> None:
        self.run_dir = run_dir
        self.path = container_dir(run_dir, container_id)
        self._started_by = os.getppid()
        self._error = run_dir / f"c{container_id}.error"

    def make(self) -> None:
        """Creates the directory, empty; removes the files of an attempt that was killed.

        Raises:
            StateError: when the directory cannot be created.
        """
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            make_private_dir(self.run_dir)
            self._error.unlink(missing_ok=True)
            self.path.mkdir(mode=0o700)
        except OSError as error:
            msg = f"cannot create container directory {self.path}: {error.strerror}"
            raise StateError(msg) from error

    def package_dir(self, package: str = "") -> Path:
        """The folder with the files of a package (`InstancePlan.package`); "" is that of the submission."""
        return self.path / (f"pkg-{xxh3_64_hexdigest(package.encode())}" if package else "pkg")

    def fetch_package(self, uploader: Uploader, uri: str, *, submitted: bool = False) -> None:
        """Downloads and unpacks a package with new code, or with `submitted` that of the submission.

        Raises:
            PackageError: when the package cannot be fetched, or does not match its manifest.
        """
        folder = self.package_dir("" if submitted else uri)
        package = folder.with_name(f"{folder.name}.tar.gz")
        uploader.download(uri, package)
        unpack(package, folder)
        package.unlink(missing_ok=True)

    def remove_package(self, package: str) -> None:
        """Removes the files of a package with new code."""
        shutil.rmtree(self.package_dir(package), ignore_errors=True)

    def leave_error(self, reason: str) -> None:
        """Writes, for the scheduler, why this container did not run."""
        line = " ".join(reason.split())
        try:
            self._error.write_text(f"{line}\n", encoding="utf-8")
        except OSError:
            return  # the log has the reason, too

    def clear(self) -> None:
        """Removes the directory; the run directory stays for the next attempt."""
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
        """Removes the directory, and the run directory if no other container uses it."""
        self.clear()
        if any(each.is_dir() for each in self.run_dir.glob("c*")):
            return
        try:
            for left in self.run_dir.glob("c*.error"):
                left.unlink(missing_ok=True)
            self.run_dir.rmdir()  # fails, as intended, if a container has started meanwhile
        except OSError:
            return
