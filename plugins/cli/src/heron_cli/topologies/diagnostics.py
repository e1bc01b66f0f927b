"""The checks of ``heron doctor``: faults of a machine or a profile that would stop topologies.

Each check is a function that returns diagnoses. No check leaves a change behind, and none waits for long.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heron.clock import wall_s
from heron.errors import HeronError, StateError
from heron.instance.output.fast_emit import speedups
from heron.ipc.endpoint import check_run_dir
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import kill_command
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.plugin_check import ask_server
from heron_cli.profiles import Profile
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import read_run, topologies
from heron_cli.topologies.runs.discovery import Facts, RunState, classify, discover
from heron_cli.topologies.runs.run_folders import RUN_DIR_PREFIX, is_private_dir, run_parent

__all__ = ["Diagnosis", "diagnose_machine", "diagnose_profile"]

_PYTHON = (3, 11)
_FILES = 1024  # a stream manager has at least two descriptors per task of its container, and one per peer
_FREE_BYTES = 1 << 30
_LEAST_BYTES = 64 << 20
_SKEW_S = 2.0
_SETTLED_S = 60.0  # a run directory of this age has sockets, if a process uses it
_PROBE = "heron-doctor"
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check: `level` is ok, warning or error; `remedy` says what to do, "" for ok."""

    check: str
    level: str
    text: str
    remedy: str = ""


def diagnose_machine() -> Iterator[Diagnosis]:
    """Check the machine: Python, open files, the compiled emit, plugins."""
    yield _python()
    yield _open_files()
    yield _speedups()
    yield from _plugins()


def diagnose_profile(environment: Environment) -> Iterator[Diagnosis]:
    """Check the profile: its folders, servers, and the topologies in its state manager."""
    profile = environment.profile
    yield _run_dir(profile)
    yield _log_dir(profile)
    yield from _disk(profile)
    yield _clock(Path(profile.log_dir))
    yield _uploader(profile.uploader)
    reachable = _statemgr(environment.statemgr)
    yield reachable
    if reachable.level == "ok":
        yield from _dead_topologies(environment)
        yield from _orphan_run_dirs(profile, environment.statemgr)


def _python() -> Diagnosis:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _PYTHON:
        return Diagnosis("python", "error", f"version {version}", "use Python 3.11 or newer")
    if sys.platform != "linux":
        return Diagnosis("python", "error", f"version {version} on {sys.platform}", "run topologies on Linux")
    return Diagnosis("python", "ok", f"version {version}")


def _open_files() -> Diagnosis:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FILES:
        return Diagnosis("open files", "ok", f"at most {'any number' if soft == resource.RLIM_INFINITY else soft}")
    text = f"at most {soft}, topologies of many tasks or containers need {_FILES} or more"
    return Diagnosis("open files", "warning", text, f"ulimit -n {min(_FILES, hard) if hard > 0 else _FILES}")


def _speedups() -> Diagnosis:
    found = speedups()
    if found.is_broken:
        return Diagnosis("compiled emit", "warning", found.state, "pip install --force-reinstall heron-speedups")
    return Diagnosis("compiled emit", "ok", found.state)


def _plugins() -> Iterator[Diagnosis]:
    found = Drivers().catalog()
    broken = [each for each in found if each.error]
    for each in broken:
        what = f"{each.family} {each.name} of {each.distribution} {each.version}: {each.error}"
        yield Diagnosis("plugins", "warning", what, f"pip install --force-reinstall {each.distribution}")
    if not broken:
        yield Diagnosis("plugins", "ok", f"{len(found)} drivers load")


def _run_dir(profile: Profile) -> Diagnosis:
    try:
        parent = run_parent(profile.run_dir)
        check_run_dir(parent / f"{RUN_DIR_PREFIX}12345678")
    except HeronError as error:
        return Diagnosis("run directory", "error", str(error), "set run.run_dir or TMPDIR to a short path")
    return _writable("run directory", parent, "set run.run_dir or TMPDIR to a folder where you may write")


def _log_dir(profile: Profile) -> Diagnosis:
    return _writable(
        "log directory", _existing(Path(profile.log_dir)), "set run.log_dir to a folder where you may write"
    )


def _writable(check: str, folder: Path, remedy: str) -> Diagnosis:
    try:
        with tempfile.TemporaryDirectory(prefix=f".{_PROBE}-", dir=folder):
            mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        return Diagnosis(check, "error", f"{folder}: {error.strerror}", remedy)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return Diagnosis(
            check, "warning", f"{folder}: any user may remove files there, mode {mode:04o}", f"chmod +t {folder}"
        )
    return Diagnosis(check, "ok", str(folder))


def _disk(profile: Profile) -> Iterator[Diagnosis]:
    seen: set[int] = set()
    for folder in (run_parent(profile.run_dir), _existing(Path(profile.log_dir))):
        try:
            device, free = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError:
            continue  # reported above
        if device in seen:
            continue
        seen.add(device)
        level = "error" if free < _LEAST_BYTES else "warning" if free < _FREE_BYTES else "ok"
        text = f"{folder}: {free / (1 << 30):.1f} GB free"
        yield Diagnosis(
            "disk", level, text, "" if level == "ok" else "make room, or choose another folder in the profile"
        )


def _clock(folder: Path) -> Diagnosis:
    """Compare clocks: the time of a file is that of its file system, which may be on another machine."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)) as file:
            skew_s = os.fstat(file.fileno()).st_mtime - wall_s()
    except OSError as error:
        return Diagnosis("clock", "warning", f"cannot be compared: {error.strerror}", "see the log directory above")
    if abs(skew_s) > _SKEW_S:
        text = f"the file system of {folder} is {skew_s:+.0f} s away from this machine's clock"
        return Diagnosis("clock", "warning", text, "let both follow one time server")
    return Diagnosis("clock", "ok", "agrees with the file system's")


def _statemgr(statemgr: StateManager) -> Diagnosis:
    try:
        found = topologies(statemgr)
        statemgr.hold(NodeKind.LOCK, _PROBE, b"").release()
    except HeronError as error:
        return Diagnosis("state manager", "error", str(error), "start it, or correct the profile's statemgr section")
    return Diagnosis("state manager", "ok", f"answers, has {len(found)} topology names")


def _uploader(uploader: DriverRef) -> Diagnosis:
    try:
        answer = ask_server(uploader, _ANSWER_S)
    except HeronError as error:
        return Diagnosis("uploader", "error", str(error), "start it, or correct the profile's uploader section")
    return Diagnosis("uploader", "ok", answer or f"{uploader.name} has no server")


def _dead_topologies(environment: Environment) -> Iterator[Diagnosis]:
    for name in topologies(environment.statemgr):
        try:
            facts = discover(environment, name)
        except HeronError as error:
            yield Diagnosis("topologies", "warning", f"{name}: {error}", f"heron kill {name}")
            continue
        state = classify(facts)
        if facts.newer:
            yield Diagnosis("topologies", "error", f"{name}: {facts.newer}", "pip install -U heron-core")
        elif state is RunState.GARBLED or facts.error:
            yield Diagnosis("topologies", "error", f"{name}: {facts.error}", _kill(name, facts))
        elif state is RunState.LOST:
            yield Diagnosis("topologies", "warning", f"{name}: dead, it did not clean up", _kill(name, facts))
        elif state is RunState.ELSEWHERE and facts.run:
            text = f"{name}: submitted on host {facts.run.host} with profile {facts.run.profile}, and not led"
            command = kill_command(name, environment.profile.name)
            yield Diagnosis("topologies", "warning", text, f"look there, or {command} --force")


def _kill(name: str, facts: Facts) -> str:
    return facts.known.kill_command if facts.known else f"heron kill {name}"


def _orphan_run_dirs(profile: Profile, statemgr: StateManager) -> Iterator[Diagnosis]:
    """Find run directories that no topology and no process uses; their state was removed by hand, for example."""
    try:
        sockets = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
        folders = sorted(run_parent(profile.run_dir).glob(f"{RUN_DIR_PREFIX}*"))
        unused = [each for each in folders if _is_unused(each, sockets)]
    except OSError:
        return  # /proc or the folder cannot be read
    known = _known_run_dirs(statemgr) if unused else frozenset()
    for folder in unused:
        if str(folder) not in known:
            yield Diagnosis("run directories", "warning", f"{folder}: no process uses it", f"rm -r {folder}")


def _is_unused(folder: Path, sockets: str) -> bool:
    found = folder.lstat()
    return is_private_dir(found) and wall_s() - found.st_mtime > _SETTLED_S and f" {folder}/" not in sockets


def _known_run_dirs(statemgr: StateManager) -> frozenset[str]:
    found = set()
    for name in statemgr.list(NodeKind.EXECUTION_STATE):
        with contextlib.suppress(StateError):
            run = read_run(statemgr, name)
            found.add(run.run_dir if run else "")
    return frozenset(found)


def _existing(path: Path) -> Path:
    """Return the folder, or its nearest parent that exists: a command makes the rest."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.is_dir())
