"""A client of DistributedLog for tests: the other side of a connector, by the client's synchronous calls."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from heron_testing_servers.server_process import ServerError

__all__ = ["LogStreams"]

_PROGRAM = Path(__file__).with_name("LogStreams.java")


class LogStreams:
    """A JVM that carries out one command after the other. It starts with the first one, and ends with this process."""

    def __init__(self, java: Sequence[str], uri: str, log: Path) -> None:
        """`java` is the begin of a command, with the class path."""
        self._command = [*java, str(_PROGRAM), uri]
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def make_namespace(self) -> None:
        """Make the metadata of an empty BookKeeper and of the namespace."""
        self._ask("init")

    def make(self, name: str) -> None:
        """Create a log."""
        self._ask("create", name)

    def write(self, name: str, texts: Sequence[str], first_id: int = 0) -> None:
        """Append records, and return when a quorum has them; waits 60 s for bookies that are away.

        Their transaction ids ascend by one from `first_id`, or from the last one of the log.
        """
        self._ask("write", name, str(first_id), *(base64.b64encode(text.encode()).decode() for text in texts))

    def read(self, name: str, first_id: int = 1) -> list[str]:
        """Return the records that readers see now, from a transaction id on; none if there is no such log."""
        return [base64.b64decode(each).decode() for each in self._ask("read", name, str(first_id))]

    def ids(self, name: str) -> list[int]:
        """The transaction ids of all records."""
        return [int(each) for each in self._ask("ids", name, "1")]

    def names(self) -> list[str]:
        """All logs."""
        return self._ask("names")

    def roll(self, name: str) -> None:
        """End the segment that is being written; this client stops to be a writer of the log."""
        self._ask("close", name)

    def truncate(self, name: str, first_id: int) -> None:
        """Remove the records below a transaction id, as retention does: whole segments are deleted."""
        self._ask("truncate", name, str(first_id))

    def close(self) -> None:
        """End the JVM."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def _ask(self, *words: str) -> list[str]:
        with self._lock:
            process = self._started()
            assert process.stdin is not None  # both are pipes
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(" ".join(words) + "\n")
                process.stdin.flush()
            status, *answer = process.stdout.readline().split() or ["ended"]
            while status == "more":
                status, *rest = process.stdout.readline().split() or ["ended"]
                answer += rest
        if status != "ok":
            msg = f"{' '.join(words[:2])}: {status} {' '.join(answer)}; see {self._log}"
            raise ServerError(msg)
        return answer

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
                )
        return self._process
