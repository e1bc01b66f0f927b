"""Class paths: jars and folders of classes, as Java has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heron_runtime_jvm.java_program import JavaError

__all__ = ["expanded_class_path"]


def expanded_class_path(entries: Sequence[str], folder: Path) -> list[Path]:
    """Return the jars and folders of a class path, in its order. Relative entries are relative to `folder`.

    ``FOLDER/*`` means the jars of a folder, in the order of their names. ``~`` is the home folder.

    Raises:
        JavaError: when an entry does not exist, or a folder has no jars.
    """
    paths: list[Path] = []
    for entry in entries:
        place = folder / Path(entry).expanduser()
        found = sorted(place.parent.glob("*.jar")) if place.name == "*" else [place] if place.exists() else []
        if not found:
            what = "has no jars" if place.name == "*" else "does not exist"
            msg = f"class path: {entry!r} {what}, looked for at {place}; correct class_path, or put the files there"
            raise JavaError(msg)
        paths += found
    return paths
