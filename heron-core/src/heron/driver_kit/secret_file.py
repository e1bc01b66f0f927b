"""A secret in a file: on the machine of the command, or on each of those where containers run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heron.errors import ConfigError

__all__ = ["read_secret"]

_MAX_BYTES = 64 * 1024  # a key or a certificate has a few thousand


def read_secret(name: str) -> str:
    """The text in a file, without the end of its line; ``~`` is the home of who reads it.

    Raises:
        ConfigError: when it cannot be read, is open to others, empty, large or no text.
    """
    path = Path(name).expanduser()
    if not path.is_absolute():
        msg = f"the file {name!r} is not named from the root; begin with '/' or '~/'"
        raise ConfigError(msg)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hold up the command
        try:
            mode = os.fstat(descriptor).st_mode
            content = os.read(descriptor, _MAX_BYTES + 1) if stat.S_ISREG(mode) else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        msg = f"the file {path} cannot be read: {error.strerror}; make it, or change the profile"
        raise ConfigError(msg) from error
    if not stat.S_ISREG(mode):
        msg = f"{path} is no regular file; name one"
        raise ConfigError(msg)
    if mode & stat.S_IRWXO:
        msg = f"others may use the file {path}, its mode is {stat.S_IMODE(mode):04o}; `chmod 600 {path}`"
        raise ConfigError(msg)
    if not 0 < len(content) <= _MAX_BYTES:
        wrong = f"larger than {_MAX_BYTES} bytes" if content else "empty"
        msg = f"the file {path} is {wrong}; put the secret alone into it"
        raise ConfigError(msg)
    try:
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        msg = f"the file {path} is not UTF-8 text; encode what is in it"
        raise ConfigError(msg) from None
