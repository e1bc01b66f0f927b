"""Java sources of a distribution, compiled when a machine first needs them, and kept by what they are made of.

Decision 094 says why wheels have no jar.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from heron_runtime_jvm.java_program import JavaError, JavaProgram, short_lines

__all__ = ["STORM_LOGGERS", "compiled_classes"]

STORM_LOGGERS = Path(__file__).parent / "java" / "heron" / "jvm" / "StormLoggers.java"
"""The source of the class that makes Storm log its warnings only."""

_INTERFACE = "org/apache/storm/task/IBolt.class"
_COMPILE_S = 300.0  # 3 s of a processor


def compiled_classes(
    name: str,
    sources: Sequence[Path],
    class_path: Sequence[Path],
    java: JavaProgram,
    before: Callable[[], None] = lambda: None,
) -> Path:
    """Return the folder of the classes of `sources`, which are compiled if this user has not compiled them before.

    The folder is in ``~/.cache/heron/jvm``, or in ``XDG_CACHE_HOME``. Its name is `name` and the digest of the sources,
    the version of Java, and the names and sizes of the jars that have Storm's interfaces. Processes may call this at
    the same time: one of them compiles, the others wait for it. `before` is called before a compilation.

    Raises:
        JavaError: when there is no compiler, or it refuses the sources.
    """
    cache = _cache()
    target = cache / f"{name}-{_digest(sources, class_path, java)}"
    if target.is_dir():
        return target
    compiler = java.compiler()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache):
            if not target.is_dir():
                before()
                _make(target, compiler, sources, class_path)
    except OSError as error:
        msg = f"Java classes cannot be stored: {error}; set XDG_CACHE_HOME to a folder that can be written"
        raise JavaError(msg) from error
    return target


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the first start of a topology would else compile once for each task."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: each process compiles, and the first one stays
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(target: Path, compiler: Path, sources: Sequence[Path], class_path: Sequence[Path]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _compile(compiler, unfinished, sources, class_path)
        unfinished.chmod(0o755)
        unfinished.rename(target)
    except OSError:
        if not target.is_dir():  # else another process was first
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _digest(sources: Sequence[Path], class_path: Sequence[Path], java: JavaProgram) -> str:
    digest = sha256(java.version.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for each in class_path:
        if each.is_file() and _has_storm(each):  # those of a topology change with each build of it
            digest.update(f"{each.name}\0{each.stat().st_size}\0".encode())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heron" / "jvm"
    except RuntimeError as error:
        msg = f"Java classes cannot be stored: {error}; set XDG_CACHE_HOME to a folder that can be written"
        raise JavaError(msg) from error


def _has_storm(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return _INTERFACE in archive.NameToInfo
    except (OSError, zipfile.BadZipFile):
        return False  # the compiler says more about it


def _compile(compiler: Path, folder: Path, sources: Sequence[Path], class_path: Sequence[Path]) -> None:
    command = [str(compiler), "-d", str(folder), "-proc:none", "-nowarn", "-encoding", "UTF-8", "-implicit:none"]
    command += ["-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, class_path))]
    try:
        ran = subprocess.run(
            [*command, *map(str, sources)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{compiler} did not end within {_COMPILE_S:g} s"
        raise JavaError(msg) from error
    if ran.returncode != 0:
        jars = ", ".join(each.name for each in class_path) or "none"
        msg = f"{compiler} refuses {sources[0].name}:\n  {short_lines(ran.stderr)}\nclass path: {jars}"
        raise JavaError(msg)
