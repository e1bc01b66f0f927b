"""An archive of wheels of what is installed here, as `pip wheel` makes it, and an interpreter that has none of it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution  # noqa: TID251 - it packs what is installed here
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement

__all__ = ["bare_interpreter", "write_wheel_archive"]


def bare_interpreter() -> Path:
    """Return an interpreter that has no Heron."""
    bare = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    without = subprocess.run([bare, "-P", "-c", "import heron"], capture_output=True, text=True, check=False)
    assert "No module named 'heron'" in without.stderr
    return bare


def write_wheel_archive(names: Iterable[str], target: Path) -> str:
    """Write the wheels of some distributions and of all that they require; return the value of `scheduler.wheels`."""
    with zipfile.ZipFile(target, "w") as archive:
        for each in _closure(names).values():
            with archive.open(_file_name(each), "w") as file, zipfile.ZipFile(file, "w") as wheel:
                for path, name in _content(each):
                    wheel.write(path, name)
    with target.open("rb") as written:
        return f"{target}#sha256={hashlib.file_digest(written, 'sha256').hexdigest()}"


def _closure(names: Iterable[str]) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "_", waiting.pop()).lower()
        if name in found:
            continue
        found[name] = distribution(name)
        required = map(Requirement, found[name].requires or ())
        waiting += [each.name for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def _file_name(found: Distribution) -> str:
    tags = re.findall(r"^Tag: (\S+)-(\S+)-(\S+)$", found.read_text("WHEEL") or "", re.MULTILINE)
    tag = "-".join(".".join(dict.fromkeys(words)) for words in zip(*tags, strict=True))
    assert tag
    return f"{re.sub(r'[-_.]+', '_', found.metadata['Name'])}-{found.version}-{tag}.whl"


def _content(found: Distribution) -> Iterator[tuple[Path, str]]:
    """The files of a distribution, with their names in its wheel; an editable one has its modules in its project."""
    for each in found.files or ():
        if ".." not in each.parts and each.suffix not in {".pth", ".pyc"}:
            yield Path(str(each.locate())), str(each)
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        source = Path(urlsplit(origin["url"]).path, "src")
        for path in source.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                yield path, str(path.relative_to(source))
