"""Unpacks wheels and starts a module of them, where nothing but a Python interpreter is installed; decision 080.

It runs as ``PYTHON -P -c SOURCE ADDRESS SHA256 FOLDER MODULE ARGUMENT...``, so it uses the standard library only. The
module then replaces this process. What is unpacked stays in the folder for the next start.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

__all__ = ["WheelsError", "fitting", "unpacked"]

_SILENCE_S = 60.0  # a server that sends nothing for a minute has failed
_CHUNK_BYTES = 1 << 20
_IN_SITE = ("purelib", "platlib")  # the other parts of a wheel are for commands and documents


class WheelsError(Exception):
    """The wheels cannot be used here."""


def unpacked(address: str, sha256: str, folder: Path) -> Path:
    """Return the folder with the modules of an archive of wheels; it is fetched unless that has been done.

    Raises:
        WheelsError: when the archive has another SHA-256, or lacks a wheel for this interpreter.
        OSError: when it cannot be fetched or written.
        zipfile.BadZipFile: when it is damaged.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        msg = f"other users may write to {folder}; remove it"
        raise WheelsError(msg)
    site = folder / sha256
    if site.is_dir():
        return site
    with tempfile.TemporaryDirectory(dir=folder) as work:
        archive, made = Path(work, "wheels.zip"), Path(work, "site")
        _fetch(address, sha256, archive)
        with zipfile.ZipFile(archive) as wheels:
            for each in fitting(name for name in wheels.namelist() if name.endswith(".whl")):
                with zipfile.ZipFile(wheels.extract(each, work)) as wheel:
                    _unpack(wheel, made)
        try:
            made.rename(site)
        except OSError:
            if not site.is_dir():  # another container of this machine was faster
                raise
    return site


def fitting(names: Iterable[str]) -> list[str]:
    """Return the wheels that fit this interpreter, by their names.

    Raises:
        WheelsError: when there are none at all, or a distribution has only others.
    """
    kept: list[str] = []
    others: dict[str, str] = {}
    for name in names:
        distribution = Path(name).name.partition("-")[0]
        if _fits(name):
            kept.append(name)
        else:
            others[distribution] = name
    missing = others.keys() - {Path(each).name.partition("-")[0] for each in kept}
    here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform.machine()}"
    if missing:
        msg = f"{others[min(missing)]} does not fit {here}; make the archive with the Python of the containers"
        raise WheelsError(msg)
    if not kept:
        msg = "the archive has no wheels; make it from a folder of `pip wheel`"
        raise WheelsError(msg)
    return kept


def _fits(name: str) -> bool:
    python, abi, system = Path(name).stem.split("-")[-3:]
    minor = sys.version_info[1]
    here = f"cp3{minor}"
    old = re.fullmatch(r"cp3(\d+)", python)
    stable = abi == "abi3" and old is not None and int(old[1]) <= minor
    pythons = stable or any(each in {"py3", f"py3{minor}", here} for each in python.split("."))
    musl = platform.libc_ver()[0] != "glibc"
    machine = f"_{platform.machine()}"
    systems = (
        each == "any" or (each.endswith(machine) and each.startswith("musl") == musl) for each in system.split(".")
    )
    return pythons and abi in {"none", "abi3", here} and any(systems)


def _fetch(address: str, sha256: str, target: Path) -> None:
    digest = hashlib.sha256()
    url = address if "://" in address else Path(address).as_uri()
    with urllib.request.urlopen(url, timeout=_SILENCE_S) as source, target.open("wb") as file:  # noqa: S310 - the options allow http, https and paths
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != sha256:
        msg = f"its SHA-256 is {digest.hexdigest()}; correct `scheduler.wheels`, or the file"
        raise WheelsError(msg)


def _unpack(wheel: zipfile.ZipFile, target: Path) -> None:
    for entry in wheel.infolist():
        top, _, rest = entry.filename.partition("/")
        if top.endswith(".data"):
            part, _, rest = rest.partition("/")
            if part not in _IN_SITE or not rest:
                continue
            entry.filename = rest
        wheel.extract(entry, target)


def _main(address: str, sha256: str, folder: str, *command: str) -> NoReturn:
    place = Path(folder or Path(tempfile.gettempdir(), f"heron-wheels-{os.getuid()}"))
    try:
        site = unpacked(address, sha256, place)
    except (WheelsError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"the wheels at {address} cannot be used: {error}")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    os.execv(sys.executable, [sys.executable, "-P", "-m", *command])  # noqa: S606


if __name__ == "__main__":
    _main(*sys.argv[1:])
