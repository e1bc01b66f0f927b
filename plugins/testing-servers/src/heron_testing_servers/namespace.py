"""Network namespaces of Linux by name; needs root."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from heron_testing_servers.install import ServerNotInstalledError, system_program

__all__ = ["Namespace", "remove_stale"]

_NAMED = Path("/run/netns")  # iproute2 keeps the namespaces here
_OWN = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_RUN_S = 30.0


class Namespace:
    """One network namespace; the empty name is the namespace of this process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._ip = system_program("ip", "iproute2")

    @classmethod
    def make(cls, name: str) -> Namespace:
        """Make it with only the loopback interface.

        Raises:
            ServerNotInstalledError: when this machine does not allow it.
        """
        made = cls(name)
        made.run(made._ip, "netns", "add", name, inside=False)
        made.ip("link", "set", "lo", "up")
        return made

    @property
    def path(self) -> Path:
        """The path for `nsenter --net`."""
        return _NAMED / self.name if self.name else _OWN

    def ip(self, *words: str) -> str:
        """Run `ip WORDS` in it and return the output.

        Raises:
            ServerNotInstalledError: when it fails.
        """
        at = ["-n", self.name] if self.name else []
        return self.run(self._ip, *at, *words, inside=False)

    def run(self, *command: str, stdin_text: str = "", inside: bool = True) -> str:
        """Run a command with `stdin_text` as its input, and return the output.

        Raises:
            ServerNotInstalledError: when it fails.
        """
        enter = [self._ip, "netns", "exec", self.name] if inside and self.name else []
        try:
            ran = subprocess.run(
                [*enter, *command], input=stdin_text, capture_output=True, text=True, timeout=_RUN_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            msg = f"`{' '.join(command)}` does not run: {error}"
            raise ServerNotInstalledError(msg) from error
        if ran.returncode != 0:
            msg = f"`{' '.join(command)}` ended with {ran.returncode}: {ran.stderr.strip()}"
            raise ServerNotInstalledError(msg)
        return ran.stdout

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Enter it with this thread; sockets that the thread makes meanwhile stay there."""
        own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(self.path)
            try:
                yield
            finally:
                _enter_descriptor(own)
        finally:
            os.close(own)

    def remove(self) -> None:
        """End its processes, and remove it with its interfaces."""
        for pid in self.run(self._ip, "netns", "pids", self.name, inside=False).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.run(self._ip, "netns", "del", self.name, inside=False)


def remove_stale(prefix: str) -> None:
    """Remove every ``PREFIX-PID-…`` whose process is gone, as killed tests leave them."""
    for path in _NAMED.glob(f"{prefix}-*-*"):
        pid = path.name.removeprefix(f"{prefix}-").partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            Namespace(path.name).remove()


def _enter(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter_descriptor(descriptor)
    finally:
        os.close(descriptor)


def _enter_descriptor(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns exists since Python 3.12
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
