"""A source that reads the logs of a directory, across their rotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heron.clock import SystemClock
from heron.errors import UsageError
from heron_connector_files.followed_log import Rules
from heron_connector_files.log_line import LogLine
from heron_connector_files.reader import DirectoryReader, Part
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["FilesSource"]

_RULES = ("error", "skip")
_MOST_PARTITIONS = 4096
_MOST_BYTES = 1 << 30


class FilesSource(Source[LogLine]):
    """The lines of the logs of a directory: those in rotated files first, then those that are written.

    A log is a file whose name matches, with its rotated files: ``app.log`` with ``app.log.1``, ``app.log.2.gz`` and
    ``app.log-20261129``. A log has its lines in order, and is read by one partition, which its name decides. Logs that
    appear later are read, too. A line without a line end waits.

    Args:
        directory: where the logs are. All machines that run tasks of the source need it under this path.
        names: a pattern for the names of the files that are written, as in a shell.
        partitions: how many tasks can share the logs, at most; from 1 to 4,096. It is part of the positions: another
            number needs a new submission without a checkpoint.
        line_bytes: the longest line, from 1 to 1,073,741,824 bytes. A longer one is divided.
        linger_s: for how long a file that was rotated may be still written, in seconds, at least 0. Then its last bytes
            are a line, also without a line end, and it is closed.
        missing: what happens when a file is gone that was not read to its end: ``"error"``, or ``"skip"``, which counts
            it in the metric ``source`` and goes on with the next one.
        scan_s: how often the directory is listed, in seconds, above 0.

    Raises:
        UsageError: when an argument is wrong.
    """

    bounded = False
    repeatable = False  # from a position, but the logs of a partition may then come in another order
    word = "files"

    def __init__(
        self,
        directory: str | Path,
        names: str = "*.log",
        *,
        partitions: int = 16,
        line_bytes: int = 1 << 20,
        linger_s: float = 30.0,
        missing: str = "error",
        scan_s: float = 0.5,
    ) -> None:
        _check(names, bool(names) and "/" not in names, "names", "a pattern without /")
        _check(partitions, _within(partitions, _MOST_PARTITIONS), "partitions", "an integer from 1 to 4,096")
        _check(line_bytes, _within(line_bytes, _MOST_BYTES), "line_bytes", "a number of bytes from 1 to 1,073,741,824")
        _check(linger_s, linger_s >= 0, "linger_s", "a number of seconds, at least 0")
        _check(scan_s, scan_s > 0, "scan_s", "a number of seconds above 0")
        _check(missing, missing in _RULES, "missing", "'error' or 'skip'")
        self._rules = Rules(Path(directory).absolute(), line_bytes, linger_s, missing == "skip")
        self._names, self._partitions, self._scan_s = names, partitions, scan_s

    def partitions(self, tasks: int) -> Sequence[str]:  # which the author gives
        """``0`` to ``partitions - 1``.

        Raises:
            UsageError: when there are more tasks than partitions.
        """
        if tasks > self._partitions:
            msg = f"FilesSource({self._rules.directory}): {tasks} tasks, but {self._partitions} partitions; give more"
            raise UsageError(msg)
        return [str(number) for number in range(self._partitions)]

    def open(self, partition: str, position: object, context: StageContext) -> DirectoryReader:
        """`Source.open`. The first `read` opens files."""
        part = Part(self._names, int(partition), self._partitions, self._scan_s)
        return DirectoryReader(part, self._rules, position, SystemClock())


def _within(given: object, most: int) -> bool:
    return type(given) is int and 1 <= given <= most


def _check(given: object, is_right: bool, name: str, wanted: str) -> None:
    if not is_right:
        msg = f"FilesSource: {name}={given!r} is not {wanted}"
        raise UsageError(msg)
