"""The JVM of the client: its pipes, its threads and its end.

The kernel ends it with the thread that starts it, and its stdin ends then, too. A thread of ours reads its stdout and
gives each frame to its channel; another one keeps the last lines of its stderr.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO

from heron.errors import ConnectorError
from heron_connector_dlog.errors import ClientDiedError
from heron_connector_dlog.frames import HEAD_BYTES, LENGTH_BYTES, Kind, frame, head_of
from heron_runtime_multilang.bound_command import bound_command, bound_environment

__all__ = ["ClientProcess"]

_LINES = 10
_LINE_BYTES = 500
_END_S = 5.0


class ClientProcess:
    """One JVM. `hear` gets what follows the head of each frame, and None at the end; in a thread of this object."""

    def __init__(
        self, command: Sequence[str], hear: Callable[[Kind, int, bytes], None], ended: Callable[[], None]
    ) -> None:
        """Start it.

        Raises:
            ConnectorError: when the program cannot be started.
        """
        try:
            self._process = subprocess.Popen(
                bound_command(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=bound_environment(os.environ),
                process_group=0,
            )
        except OSError as error:
            msg = f"the JVM of the log client cannot be started: {error}"
            raise ConnectorError(msg) from error
        self._hear, self._ended = hear, ended
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._lock = threading.Lock()
        self.death: ClientDiedError | None = None
        """Why it has ended."""
        self._threads = [
            threading.Thread(target=self._read_errors, name="dlog-stderr", daemon=True),
            threading.Thread(target=self._read, name="dlog-frames", daemon=True),
        ]
        for each in self._threads:
            each.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, kind: Kind, channel: int, body: bytes = b"") -> None:
        """Write a frame; of a JVM that has ended nobody reads it, and `ended` tells."""
        assert self._process.stdin is not None  # noqa: S101  # a pipe
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(frame(kind, channel, body))
            self._process.stdin.flush()

    def close(self) -> None:
        """End it, and wait for its end; idempotent."""
        self._process.kill()
        for each in self._threads:
            if each is not threading.current_thread():
                each.join(_END_S)
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._pipe(self._process.stdin).close()

    def _read(self) -> None:
        stdout = self._pipe(self._process.stdout)
        with stdout:
            while len(length := stdout.read(LENGTH_BYTES)) == LENGTH_BYTES:
                data = stdout.read(int.from_bytes(length, "big"))
                if len(data) < HEAD_BYTES:
                    break
                self._hear(*head_of(data), data[HEAD_BYTES:])
        self._threads[0].join(_END_S)
        code = self._process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = "".join(f"\n  {line}" for line in self._lines) or " it wrote nothing"
        self.death = ClientDiedError(
            f"the JVM of the log client (process {self.pid}) {how}; last lines of stderr:{lines}"
        )
        self._ended()

    def _read_errors(self) -> None:
        stderr = self._pipe(self._process.stderr)
        with stderr:
            for line in stderr:
                self._lines.append(line[:_LINE_BYTES].decode(errors="replace").rstrip())

    @staticmethod
    def _pipe(found: IO[bytes] | None) -> IO[bytes]:
        assert found is not None  # noqa: S101  # all three are pipes
        return found
