"""``python -m checks.type_cache take|keep``: a new clone begins with what mypy knows of the last one.

Mypy compares the content of files, so it checks only what differs. A cache only saves time: where it cannot be copied,
mypy begins without it.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from heron_testing_servers.install import cache_folder

__all__ = ["copy_whole"]

_ROOT = Path(__file__).resolve().parents[1]


def copy_whole(source: Path, target: Path, making: Path) -> None:
    """Replace a folder by a copy of another; if a process replaces one meanwhile, the target is as it was, or gone.

    The copy is made in the folder `making`, of the same file system.
    """
    with contextlib.suppress(OSError):
        making.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=making) as folder:
            copy = shutil.copytree(source, Path(folder) / "copy")
            if target.exists():
                target.rename(Path(folder) / "former")
            copy.rename(target)


def main(word: str) -> None:
    """Take the shared cache if this clone has none, or keep that of this clone for the next one."""
    own, shared = _ROOT / ".mypy_cache", cache_folder() / "mypy"
    if word == "keep":
        copy_whole(own, shared, shared.parent)
    elif not own.exists():
        copy_whole(shared, own, _ROOT / ".nox")  # where lint does not look


if __name__ == "__main__":
    main(sys.argv[1])
