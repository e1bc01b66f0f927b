"""What the loading child tells the command, as one JSON value through a pipe."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LoadReport"]


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Either `error`, one line for the author, or the rest; `files` are relative to the folder `root`."""

    error: str = ""
    definition: str = ""
    module: str = ""
    script: bool = False
    root: str = ""
    files: tuple[str, ...] = ()
