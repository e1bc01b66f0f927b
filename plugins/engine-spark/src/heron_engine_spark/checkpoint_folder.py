"""A folder for checkpoints on any file system that Arrow knows: local, HDFS, S3, GCS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyarrow import fs

__all__ = ["CheckpointFolder"]


class CheckpointFolder:
    """Files by their path below the folder. Small objects that a task may pickle.

    Args:
        uri: a path, or a URI such as ``hdfs://namenode:8020/checkpoints/clicks`` or ``s3://bucket/clicks``.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._open: tuple[fs.FileSystem, str] | None = None

    def __reduce__(self) -> tuple[type[CheckpointFolder], tuple[str]]:
        return CheckpointFolder, (self.uri,)

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            OSError: when there is none, or the file system does not answer.
        """
        system, base = self._opened()
        with system.open_input_file(f"{base}/{name}") as file:
            content: bytes = file.read()
            return content

    def find(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none.

        Raises:
            OSError: when the file system does not answer.
        """
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file; nobody sees a part of it.

        Raises:
            OSError: when it cannot be written.
        """
        system, base = self._opened()
        path = f"{base}/{name}"
        system.create_dir(path.rpartition("/")[0], recursive=True)
        with system.open_output_stream(f"{path}.writing") as file:
            file.write(content)
        system.move(f"{path}.writing", path)

    def names(self, folder: str) -> Iterator[str]:
        """The names of the files in a folder below this one; none if it does not exist."""
        system, base = self._opened()
        found = system.get_file_info(fs.FileSelector(f"{base}/{folder}", allow_not_found=True))
        return (f"{folder}/{each.base_name}" for each in found if each.is_file)

    def remove(self, name: str) -> None:
        """Remove a file; one that does not exist is no error."""
        system, base = self._opened()
        try:
            system.delete_file(f"{base}/{name}")
        except FileNotFoundError:
            return

    def remove_all(self) -> None:
        """Remove the folder and everything in it."""
        system, base = self._opened()
        if system.get_file_info(base).type is not fs.FileType.NotFound:
            system.delete_dir(base)

    def _opened(self) -> tuple[fs.FileSystem, str]:
        if self._open is None:
            if "://" in self.uri:
                self._open = fs.FileSystem.from_uri(self.uri)
            else:
                self._open = fs.LocalFileSystem(), str(Path(self.uri).expanduser().absolute())
        return self._open
