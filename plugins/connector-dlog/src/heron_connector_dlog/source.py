"""A source that reads logs. Each log is a partition of the source, and DLSNs are the positions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from heron.errors import UsageError, nearest
from heron_connector_dlog.errors import LogMissingError
from heron_connector_dlog.log_client import LogClient
from heron_connector_dlog.log_namespace import LogNamespace
from heron_connector_dlog.reader import StreamReader
from heron_connector_dlog.record import BEGIN, Place, Record
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["DlogSource"]

_RULES = ("error", "skip")
_SHOWN = 20


class DlogSource(Source[Record]):
    """The committed records of logs, in the order of each log.

    The logs, and the places that `start` and `until` mean, are found when the pipeline starts.

    Args:
        namespace: how the client reaches the logs.
        streams: the name of a log, a list of names, or a prefix that ends with ``*``: all logs whose names begin so.
        start: where reading begins without a checkpoint: ``"earliest"``, ``"latest"``, or a time: a `datetime` with a
            time zone, or seconds since 1970 in UTC. A time needs transaction ids that are milliseconds since then.
        until: where reading ends: None for never, ``"latest"`` for what is there when the pipeline starts.
            Batch engines need an end.
        truncated: what happens when records were truncated away before they were read: ``"error"``, or ``"skip"``,
            which counts them in the metric ``source``, as ``truncated``.

    Raises:
        UsageError: when an argument is wrong.
    """

    word = "dlog"

    def __init__(
        self,
        namespace: LogNamespace,
        streams: str | Sequence[str],
        *,
        start: str | datetime | float = "earliest",
        until: str | None = None,
        truncated: str = "error",
    ) -> None:
        self.streams = [streams] if isinstance(streams, str) else list(streams)
        if not self.streams or not all(self.streams):
            msg = f"DlogSource: streams={streams!r} is neither a name nor a list of names"
            raise UsageError(msg)
        if until not in {None, "latest"}:
            msg = f"DlogSource: until={until!r} is not None or 'latest'"
            raise UsageError(msg)
        if truncated not in _RULES:
            msg = f"DlogSource: truncated={truncated!r} is not 'error' or 'skip'"
            raise UsageError(msg)
        self.bounded = until is not None
        self._namespace = namespace
        self._start = _start_of(start)
        self._skips = truncated == "skip"
        self._begins: dict[str, Place] = {}
        self._ends: dict[str, Place] = {}
        self._client = LogClient(namespace)

    def __getstate__(self) -> dict[str, object]:
        """Each task has a client of its own."""
        return {**self.__dict__, "_client": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """See `__getstate__`."""
        self.__dict__.update(state)
        self._client = LogClient(self._namespace)

    def partitions(self, tasks: int) -> Sequence[str]:  # those of the namespace
        """The names of the logs. Asks the namespace.

        Raises:
            UsageError: when a log does not exist.
            UnreachableError: when the logs do not answer.
        """
        try:
            found = self._found()
            for stream in found:
                self._resolve(stream)
        except LogMissingError as error:
            msg = f"DlogSource: {error}"
            raise UsageError(msg) from error
        finally:
            self._client.close()
        return found

    def open(self, partition: str, position: object, context: StageContext) -> StreamReader:
        """`Source.open`. Does not wait for the logs.

        Raises:
            UsageError: when the partition is not one that `partitions` has found.
        """
        if isinstance(position, Sequence):
            place = Place(*position)
        elif partition in self._begins:
            place = self._begins[partition]
        else:
            known = ", ".join(sorted(self._begins)) or "none: `partitions` was not called"
            msg = f"source {context.name!r}: there is no partition {partition!r}; known: {known}"
            raise UsageError(msg)
        return StreamReader(self._client, context.name, partition, place, self._ends.get(partition), skips=self._skips)

    def _found(self) -> list[str]:
        names = sorted(self._client.ask("names").split())
        found: dict[str, None] = {}
        for wanted in self.streams:
            prefix = wanted.removesuffix("*")
            matching = [name for name in names if name == wanted or (prefix != wanted and name.startswith(prefix))]
            if not matching:
                listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
                msg = f"DlogSource: there is no log {wanted!r}{nearest(wanted, names)}; known: {listed or 'none'}"
                raise UsageError(msg)
            found.update(dict.fromkeys(matching))
        return list(found)

    def _resolve(self, stream: str) -> None:
        """Finds the places at which reading begins and ends."""
        end = _place(self._client.ask("end", stream)) if self.bounded or self._start == "latest" else BEGIN
        if self.bounded:
            self._ends[stream] = end._replace(passed=-1)
        if self._start == "earliest":
            self._begins[stream] = end if self.bounded and not end.passed else BEGIN  # an empty log has ended
        elif self._start == "latest":
            self._begins[stream] = end
        else:
            self._begins[stream] = _place(self._client.ask("find", stream, int(self._start)))


def _place(answer: str) -> Place:
    return Place(*map(int, answer.split()))


def _start_of(given: object) -> str | int:
    """A word, or milliseconds since 1970."""
    if given in {"earliest", "latest"}:
        return str(given)
    if isinstance(given, datetime) and given.tzinfo is not None:
        return round(given.timestamp() * 1000)
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given >= 0:
        return round(given * 1000)
    msg = (
        f"DlogSource: start={given!r} is not 'earliest' or 'latest', a datetime with a time zone, or seconds since 1970"
    )
    raise UsageError(msg)
