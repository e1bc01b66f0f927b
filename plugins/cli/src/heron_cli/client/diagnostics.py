"""What can be wrong on a machine or in a profile before a topology runs there, looked at one thing at a time.

Each check is a function that gives findings; none changes anything that stays, and none waits for long.
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
from heron.ipc.endpoint import check_run_dir
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import kill_command
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.server_check import ask_server
from heron_cli.client.discovery import Facts, RunState, classify, read_run, survey, topologies
from heron_cli.client.environment import Environment
from heron_cli.launch.folders import RUN_DIR_PREFIX, run_parent
from heron_cli.profiles import Profile

__all__ = ["Finding", "check_machine", "check_profile"]

_PYTHON = (3, 11)
_FILES = 1024  # a stream manager has two descriptors per task of its container and one per peer, at the least
_FREE_BYTES = 1 << 30
_LEAST_BYTES = 64 << 20
_SKEW_S = 2.0
_SETTLED_S = 60.0  # a run directory that is this old has sockets, if anything runs in it
_PROBE = "heron-doctor"
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: `level` is ok, warning or error; `remedy` is what to do, "" for ok."""

    check: str
    level: str
    text: str
    remedy: str = ""


def check_machine() -> Iterator[Finding]:
    """What no profile changes."""
    yield _python()
    yield _open_files()
    yield from _plugins()


def check_profile(profile: Profile, environment: Environment) -> Iterator[Finding]:
    """What depends on the profile; its drivers are open already."""
    yield _run_dir(profile)
    yield _log_dir(profile)
    yield from _disk(profile)
    yield _clock(Path(profile.log_dir))
    yield _uploader(profile.uploader)
    reachable = _statemgr(environment.statemgr)
    yield reachable
    if reachable.level == "ok":
        yield from _leftovers(environment)
        yield from _run_dirs_of_nobody(profile, environment.statemgr)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _PYTHON:
        return Finding("python", "error", f"version {version}", "use Python 3.11 or newer")
    if sys.platform != "linux":
        return Finding("python", "error", f"version {version} on {sys.platform}", "run topologies on Linux")
    return Finding("python", "ok", f"version {version}")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FILES:
        return Finding("open files", "ok", f"at most {'any number' if soft == resource.RLIM_INFINITY else soft}")
    text = f"at most {soft}, topologies of many tasks or containers need {_FILES} or more"
    return Finding("open files", "warning", text, f"ulimit -n {min(_FILES, hard) if hard > 0 else _FILES}")


def _plugins() -> Iterator[Finding]:
    found = Drivers().catalog()
    broken = [each for each in found if each.error]
    for each in broken:
        what = f"{each.family} {each.name} of {each.distribution} {each.version}: {each.error}"
        yield Finding("plugins", "warning", what, f"pip install --force-reinstall {each.distribution}")
    if not broken:
        yield Finding("plugins", "ok", f"{len(found)} drivers load")


def _run_dir(profile: Profile) -> Finding:
    try:
        parent = run_parent(profile.run_dir)
        check_run_dir(parent / f"{RUN_DIR_PREFIX}12345678")
    except HeronError as error:
        return Finding("run directory", "error", str(error), "set run.run_dir or TMPDIR to a short path")
    return _writable("run directory", parent, "set run.run_dir or TMPDIR to a folder where you may write")


def _log_dir(profile: Profile) -> Finding:
    return _writable(
        "log directory", _existing(Path(profile.log_dir)), "set run.log_dir to a folder where you may write"
    )


def _writable(check: str, folder: Path, remedy: str) -> Finding:
    try:
        with tempfile.TemporaryDirectory(prefix=f".{_PROBE}-", dir=folder):
            mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        return Finding(check, "error", f"{folder}: {error.strerror}", remedy)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return Finding(
            check, "warning", f"{folder}: anybody may remove files there, mode {mode:04o}", f"chmod +t {folder}"
        )
    return Finding(check, "ok", str(folder))


def _disk(profile: Profile) -> Iterator[Finding]:
    seen: set[int] = set()
    for folder in (run_parent(profile.run_dir), _existing(Path(profile.log_dir))):
        try:
            device, free = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError:
            continue  # said above
        if device in seen:
            continue
        seen.add(device)
        level = "error" if free < _LEAST_BYTES else "warning" if free < _FREE_BYTES else "ok"
        text = f"{folder}: {free / (1 << 30):.1f} GB free"
        yield Finding(
            "disk", level, text, "" if level == "ok" else "make room, or choose another folder in the profile"
        )


def _clock(folder: Path) -> Finding:
    """A file's time is that of its file system: on a network's, of another machine."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)) as file:
            skew_s = os.fstat(file.fileno()).st_mtime - wall_s()
    except OSError as error:
        return Finding("clock", "warning", f"cannot be compared: {error.strerror}", "see the log directory above")
    if abs(skew_s) > _SKEW_S:
        text = f"the file system of {folder} is {skew_s:+.0f} s away from this machine's clock"
        return Finding("clock", "warning", text, "have both follow one time server")
    return Finding("clock", "ok", "agrees with the file system's")


def _statemgr(statemgr: StateManager) -> Finding:
    try:
        found = topologies(statemgr)
        statemgr.hold(NodeKind.LOCK, _PROBE, b"").release()
    except HeronError as error:
        return Finding("state manager", "error", str(error), "start it, or correct the profile's statemgr section")
    return Finding("state manager", "ok", f"answers, knows {len(found)} topology names")


def _uploader(uploader: DriverRef) -> Finding:
    try:
        answer = ask_server(uploader, _ANSWER_S)
    except HeronError as error:
        return Finding("uploader", "error", str(error), "start it, or correct the profile's uploader section")
    return Finding("uploader", "ok", answer or f"{uploader.name} has no server")


def _leftovers(environment: Environment) -> Iterator[Finding]:
    for name in topologies(environment.statemgr):
        try:
            facts = survey(environment, name)
        except HeronError as error:
            yield Finding("topologies", "warning", f"{name}: {error}", f"heron kill {name}")
            continue
        state = classify(facts)
        if state is RunState.GARBLED or facts.error:
            yield Finding("topologies", "error", f"{name}: {facts.error}", _kill(name, facts))
        elif state is RunState.LOST:
            yield Finding("topologies", "warning", f"{name}: dead, it did not tidy up", _kill(name, facts))
        elif state is RunState.ELSEWHERE and facts.run:
            text = f"{name}: submitted on host {facts.run.host} with profile {facts.run.profile}, and not led"
            command = kill_command(name, environment.profile.name)
            yield Finding("topologies", "warning", text, f"look there, or {command} --force")


def _kill(name: str, facts: Facts) -> str:
    return facts.known.kill_command if facts.known else f"heron kill {name}"


def _run_dirs_of_nobody(profile: Profile, statemgr: StateManager) -> Iterator[Finding]:
    """Run directories that neither a topology nor a process has: their state was removed by hand, say."""
    try:
        sockets = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
        folders = sorted(run_parent(profile.run_dir).glob(f"{RUN_DIR_PREFIX}*"))
        unused = [each for each in folders if _is_unused(each, sockets)]
    except OSError:
        return  # where it cannot be told nothing is said
    known = _known_run_dirs(statemgr) if unused else frozenset()
    for folder in unused:
        if str(folder) not in known:
            yield Finding("run directories", "warning", f"{folder}: no process uses it", f"rm -r {folder}")


def _is_unused(folder: Path, sockets: str) -> bool:
    found = folder.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return ours and wall_s() - found.st_mtime > _SETTLED_S and f" {folder}/" not in sockets


def _known_run_dirs(statemgr: StateManager) -> frozenset[str]:
    found = set()
    for name in statemgr.list(NodeKind.EXECUTION_STATE):
        with contextlib.suppress(StateError):
            run = read_run(statemgr, name)
            found.add(run.run_dir if run else "")
    return frozenset(found)


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there: a command makes the rest."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.is_dir())
