"""Servers that are not Python, installed in one folder per user, so that only the first run installs them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import HeronError

__all__ = [
    "ServerNotInstalledError",
    "cache_folder",
    "debian_package",
    "debian_programs",
    "go_module",
    "go_program",
    "go_sources",
    "installed",
    "maven_archive",
    "maven_jars",
    "python_packages",
    "system_program",
    "with_libraries",
]

_CACHE = "HERON_TESTS_CACHE"
_INSTALL_LOG = "HERON_TESTS_INSTALL_LOG"
_INSTALL_S = 600.0  # a slow mirror, for some ten megabytes
_BUILD_S = 3600.0  # Kubernetes takes 9 minutes on two idle cores, and more than 30 on busy ones

_GO = (1, 24)
_USUAL_GO = Path("/usr/local/go/bin/go")  # the place of Go's own archive; not on the PATH of every shell

_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions>{}</exclusions></dependency>"
)
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>*</artifactId></exclusion>"
_POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>heron</groupId><artifactId>servers</artifactId>"
    "<version>1</version><dependencies>{}</dependencies></project>"
)


class ServerNotInstalledError(HeronError):
    """A server for tests is not available on this machine."""


def cache_folder() -> Path:
    """Return the folder of what runs of tests share on a machine: ``HERON_TESTS_CACHE`` or ``~/.cache/heron-tests``."""
    return Path(os.environ.get(_CACHE) or Path.home() / ".cache" / "heron-tests")


def installed(name: str, install: Callable[[Path], None]) -> Path:
    """Return the folder of the server `name`, which should include its version; if it is absent, `install` makes it.

    The folder is in ``~/.cache/heron-tests``, or in ``HERON_TESTS_CACHE``. Concurrent calls wait for one installation.
    A failed or killed installation leaves nothing that looks complete. If ``HERON_TESTS_INSTALL_LOG`` names a file, the
    seconds of each call become a line of it.

    Raises:
        ServerNotInstalledError: when `install` raises it; nothing is kept, and the next call tries again.
    """
    began_s = monotonic_s()
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / name
    with _locked(cache / f".{name}.lock"):
        if not target.is_dir():
            unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache))
            try:
                install(unfinished)
                os.rename(unfinished, target)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    if log := os.environ.get(_INSTALL_LOG):
        with Path(log).open("a", encoding="ascii") as file:
            file.write(f"{monotonic_s() - began_s:.1f}\n")
    return target


def python_packages(*requirements: str) -> Callable[[Path], None]:
    """Return an `install` that makes a separate virtual environment with these packages in the folder.

    Start its programs with its ``bin/python``: the first lines of its scripts name the place where it was made.
    """

    def install(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", "."], folder)
        _run(["bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements], folder)

    return install


def debian_package(name: str) -> Callable[[Path], None]:
    """Return an `install` that unpacks a package of Debian or Ubuntu without installing it, so nothing starts.

    As root it updates apt's lists if the package is unknown.
    """

    def install(folder: Path) -> None:
        _apt(["apt-get", "download", name], folder)
        _unpack(folder)

    return install


def debian_programs(*names: str) -> Callable[[Path], None]:
    """Return an `install` as `debian_package` does, for several packages and what this machine lacks for them.

    Start the programs with `with_libraries`.
    """

    def install(folder: Path) -> None:
        listed = _apt(["apt-get", "install", "-s", "-q", "--no-install-recommends", *names], folder)
        missing = re.findall(r"^Inst (\S+) \(", listed, re.MULTILINE)  # an update has its former version in brackets
        _run(["apt-get", "download", *{*names, *missing}], folder)
        _unpack(folder)

    return install


def with_libraries(folder: Path) -> list[str]:
    """Return the beginning of a command for a program that `debian_programs` has unpacked there."""
    places = sorted({str(each.parent) for each in folder.rglob("*.so.*")})
    return ["env", f"LD_LIBRARY_PATH={os.pathsep.join(places)}"]


def _apt(command: list[str], folder: Path) -> str:
    try:
        return _run(command, folder)
    except ServerNotInstalledError:
        if os.geteuid() != 0:
            raise
        _run(["apt-get", "update", "-q"], folder)
        return _run(command, folder)


def _unpack(folder: Path) -> None:
    for archive in folder.glob("*.deb"):
        _run(["dpkg-deb", "-x", archive.name, "."], folder)
        archive.unlink()


def system_program(name: str, package: str) -> str:
    """Return the path of a system program; as root, install it with `package` if it is absent.

    Raises:
        ServerNotInstalledError: when it is not available.
    """
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    if (found := shutil.which(name, path=places)) is None:
        for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-q", "-y", package]):
            _run(command, Path("/"), {**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        found = shutil.which(name, path=places)
    if found is None:
        msg = f"the package {package} has no program {name}"
        raise ServerNotInstalledError(msg)
    return found


def maven_jars(*artifacts: str, without: Sequence[str] = ()) -> Callable[[Path], None]:
    """Return an `install` that copies Java libraries and their run-time dependencies into the folder ``lib``.

    An artifact is ``GROUP:NAME:VERSION``; the libraries of the groups in `without` are left out. It uses the ``mvn`` on
    the PATH with its settings.
    """

    def install(folder: Path) -> None:
        left_out = "".join(map(_EXCLUSION.format, without))
        wanted = "".join(_DEPENDENCY.format(*each.split(":"), left_out) for each in artifacts)
        (folder / "pom.xml").write_text(_POM.format(wanted), encoding="utf-8")
        goal = "dependency:copy-dependencies"
        _run(["mvn", "-q", "-B", goal, "-DincludeScope=runtime", "-DoutputDirectory=lib"], folder)

    return install


def maven_archive(artifact: str) -> Callable[[Path], None]:
    """Return an `install` that unpacks an archive ``GROUP:NAME:VERSION:tar.gz:CLASSIFIER`` of Maven into the folder.

    It uses the ``mvn`` on the PATH with its settings.
    """

    def install(folder: Path) -> None:
        _run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", "-DoutputDirectory=."], folder)
        for archive in list(folder.glob("*.tar.gz")):
            _run(["tar", "-xzf", archive.name], folder)
            archive.unlink()

    return install


def _run(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None, timeout_s: float = _INSTALL_S
) -> str:
    """Run the command and return its output."""
    try:
        ran = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"`{' '.join(command)}` does not run: {error}"
        raise ServerNotInstalledError(msg) from error
    if ran.returncode != 0:
        reason = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
        msg = f"`{' '.join(command)}` ended with {ran.returncode}: {''.join(reason)}"
        raise ServerNotInstalledError(msg)
    return ran.stdout


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def go_program(package: str, version: str) -> Callable[[Path], None]:
    """Return an `install` that builds the program of a Go package into the folder ``bin``.

    It needs Go 1.24 or newer, on the PATH or in ``/usr/local/go``, and uses the module settings of that Go.
    """

    def install(folder: Path) -> None:
        environment = {**os.environ, "GOBIN": str(folder / "bin"), "CGO_ENABLED": "0", "GOFLAGS": "-trimpath"}
        _run([_go(), "install", f"{package}@{version}"], folder, environment, _BUILD_S)

    return install


def go_module(module: str, version: str, replaced: Mapping[str, str]) -> Callable[[Path], None]:
    """Return an `install` as `go_program` does, for a main module that ``go install`` refuses.

    It refuses modules with replacements; `replaced` has the versions of the modules that are used instead. The program
    is linked with C.
    """

    def install(folder: Path) -> None:
        go = _go()
        source, program = folder / "source", folder / "bin" / module.rpartition("/")[2]
        found = json.loads(_run([go, "mod", "download", "-json", f"{module}@{version}"], folder))
        shutil.copytree(found["Dir"], source)
        for each in (source, *source.rglob("*")):
            each.chmod(each.stat().st_mode | stat.S_IWUSR)  # the cache of Go is read-only
        changes = [f"-replace={name}={name}@{wanted}" for name, wanted in replaced.items()]
        _run([go, "mod", "edit", *changes], source)
        build = [go, "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", str(program), "."]
        _run(build, source, {**os.environ, "CGO_ENABLED": "1"}, _BUILD_S)
        shutil.rmtree(source)

    return install


def go_sources(files: Mapping[str, str], program: str, flags: str) -> Callable[[Path], None]:
    """Return an `install` that builds one program from the sources `files`, by name, into the folder ``bin``.

    `flags` are those of the linker. It needs what `go_program` needs.
    """

    def install(folder: Path) -> None:
        source = folder / "source"
        source.mkdir()
        for name, text in files.items():
            (source / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -trimpath"}
        _run([_go(), "mod", "tidy", "-e"], source, environment, _BUILD_S)
        built = str(folder / "bin" / program)
        _run([_go(), "build", "-ldflags", f"-s -w {flags}", "-o", built, "."], source, environment, _BUILD_S)

    return install


def _go() -> str:
    wanted = ".".join(map(str, _GO))
    found = shutil.which("go") or (str(_USUAL_GO) if _USUAL_GO.exists() else None)
    if found is None:
        msg = f"it is built with Go, which is not installed; install Go {wanted} or newer"
        raise ServerNotInstalledError(msg)
    output = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    has = re.match(r"go(\d+)\.(\d+)", output)
    if has is None or (int(has[1]), int(has[2])) < _GO:
        msg = f"it is built with Go, and {found} is {output.strip() or 'unknown'}; install Go {wanted} or newer"
        raise ServerNotInstalledError(msg)
    return found
