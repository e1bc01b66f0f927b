"""The program of a package that an uploader has stored, unpacked in a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heron.kernel.manifest import PackageManifest
from heron.kernel.package import unpack
from heron.spi.uploader import Uploader
from heron_cli.catalog.third_party import open_guarded
from heron_cli.topologies.environment import ProfileChoice, find_profile
from heron_cli.topologies.package_store import find_package
from heron_cli.topologies.progress import follow_upload, ignore_bytes

__all__ = ["StoredProgram", "stored_program"]


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A package, and the folder with its files."""

    uri: str
    folder: Path
    manifest: PackageManifest

    @property
    def file(self) -> Path:
        """The author's file."""
        return self.folder / self.manifest.import_paths[0] / f"{self.manifest.module}.py"

    @property
    def more_folders(self) -> tuple[Path, ...]:
        """The folders for `sys.path` besides that of the file."""
        return tuple((self.folder / each).resolve() for each in self.manifest.import_paths[1:])


@contextmanager
def stored_program(choice: ProfileChoice, reference: str, cancelled: Callable[[], bool]) -> Iterator[StoredProgram]:
    """Fetch the package NAME:TAG or NAME:VERSION from the uploader of a profile; remove its files at the end.

    Raises:
        UsageError: when the reference has another form, or no or several packages have the version.
        PackageError: when there is no such tag, the uploader has no tags, or the package is refused.
        KeyboardInterrupt: when `cancelled` says so while the package arrives.
    """
    uploader = open_guarded(find_profile(choice, ("uploader",)).uploader, Uploader)
    found = find_package(uploader, reference)
    with tempfile.TemporaryDirectory(prefix="heron-package-") as name:
        folder = Path(name).resolve()
        package = folder / "package"
        with follow_upload(uploader, cancelled, ignore_bytes):
            uploader.download(found.uri, package)
        if cancelled():
            raise KeyboardInterrupt
        manifest = unpack(package, folder / "files")
        yield StoredProgram(found.uri, folder / "files", manifest)
