"""Folders and files that only their owner can read: run folders, spec files, secrets."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from pathlib import Path

from heron.errors import ConfigError

__all__ = ["check_private", "check_usable", "make_private_dir", "read_secret", "write_private"]

_MAX_SECRET_BYTES = 64 * 1024  # a key or a certificate has a few thousand


def make_private_dir(path: Path) -> None:
    """Create the folder and its missing parents with mode 0700. Existing folders keep their mode.

    Raises:
        OSError: as ``mkdir`` does, also when the path exists and is not a folder.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        path.mkdir(mode=0o700)


def check_private(path: Path, what: str) -> None:
    """Check that only its owner may use a file (mode 0600 or less) or a folder (0700 or less). An absent one passes.

    `what` names it in the error, such as ``state folder``.

    Raises:
        ConfigError: when its mode gives a right to the group or to others; it has the path, both modes and the remedy.
        OSError: when the mode cannot be read.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    _refuse_wide(path, what, mode)


def _refuse_wide(path: Path, what: str, mode: int) -> None:
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
        msg = (
            f"other users can access the {what} {path}: its mode is {stat.S_IMODE(mode):04o}, and must be "
            f"{wanted:04o}; `chmod {wanted:o} {shlex.quote(str(path))}`"
        )
        raise ConfigError(msg)


def check_usable(path: Path) -> None:
    """Check that this user may list and change the folder, or the first existing one of its parents.

    Raises:
        OSError: when the user may not.
    """
    existing = next(each for each in (path, *path.parents) if os.path.lexists(each))
    os.listdir(existing)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(existing))


def write_private(path: Path, data: bytes) -> None:
    """Replace the file with `data` and mode 0600, completely or not at all.

    Raises:
        OSError: when the file cannot be written; the former content stays, and no temporary file is left.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)  # the disk is full, and the part that was written may be a secret
        raise


def read_secret(name: str) -> str:
    """Return the text of a file without its final line end; ``~`` is the home folder of the current user.

    Raises:
        ConfigError: when the file cannot be read, is open to its group or to others, is empty, is larger than 64 KiB,
            is not a regular file, or is not UTF-8.
    """
    path = Path(name).expanduser()
    if not path.is_absolute():
        msg = f"the path {name!r} of a secret is relative; begin it with '/' or '~/'"
        raise ConfigError(msg)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a named pipe must not block the caller
        try:
            mode = os.fstat(descriptor).st_mode
            content = os.read(descriptor, _MAX_SECRET_BYTES + 1) if stat.S_ISREG(mode) else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        msg = f"the file {path} cannot be read: {error.strerror}; create it, or change the profile"
        raise ConfigError(msg) from error
    if not stat.S_ISREG(mode):
        msg = f"{path} is not a regular file; name a regular file"
        raise ConfigError(msg)
    _refuse_wide(path, "file", mode)
    if not 0 < len(content) <= _MAX_SECRET_BYTES:
        wrong = f"larger than {_MAX_SECRET_BYTES} bytes" if content else "empty"
        msg = f"the file {path} is {wrong}; write only the secret into it"
        raise ConfigError(msg)
    try:
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        msg = f"the file {path} is not UTF-8 text; convert it to UTF-8"
        raise ConfigError(msg) from None
