"""The token of requests, from a private file or the environment."""

from __future__ import annotations

import os
from pathlib import Path

from heron.driver_kit.private_files import check_private
from heron.errors import ConfigError

__all__ = ["read_token"]

_LEAST_TOKEN = 16  # characters: fewer can be guessed over a network


def read_token(file: Path | None, variable: str | None) -> str:
    """Return the token of a file or of a variable of the environment; "" without both.

    Raises:
        ConfigError: when other users can access the file, or there is no token of at least 16 printable characters.
    """
    if file is not None:
        try:
            check_private(file, "token file")
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"the token file {str(file)!r} cannot be read: {error}"
            raise ConfigError(msg) from error
        return _checked(text, f"the token file {str(file)!r}")
    if variable is not None:
        if variable not in os.environ:
            msg = f"the environment has no variable {variable!r}, which has to hold the token"
            raise ConfigError(msg)
        return _checked(os.environ[variable], f"the variable {variable!r}")
    return ""


def _checked(text: str, place: str) -> str:
    token = text.strip()
    if len(token) < _LEAST_TOKEN or not all("!" <= each <= "~" for each in token):
        msg = f"{place} has no token of at least {_LEAST_TOKEN} printable ASCII characters without blanks"
        raise ConfigError(msg)
    return token
