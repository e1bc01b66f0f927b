"""With which probability the rows of an emitter were kept, as its segments say; 1 unless tuples are shed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from heron.author_text import number_or_class
from heron.errors import EmitError
from heron.instance.output.emit_lock import EmitLock
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_shedder import StreamShedder
from heron.instance.output.tracked_stream import RootStream
from heron.ipc.frames.frame import kept_option

__all__ = ["KeptRows", "keep_rows", "set_probability"]


class KeptRows(Protocol):
    """What these functions need of `heron.instance.output.emitter.Emitter`."""

    probability: float
    shedders: Mapping[str, StreamShedder]
    streams: dict[str, OutStream]
    lock: EmitLock

    def flush(self) -> bool:
        """Sends everything that was emitted."""
        ...


def set_probability(emitter: KeptRows, probability: float) -> None:
    """What is emitted from now on was kept with this probability; what waits leaves with the former one.

    Raises:
        EmitError: when it is not above 0 and at most 1.
    """
    if probability == emitter.probability:
        return
    given: object = probability  # an author's value is not checked by types
    if not (isinstance(given, float | int) and 0.0 < given <= 1.0):
        msg = f"set_probability({number_or_class(given)}): not a number above 0 and at most 1"
        raise EmitError(msg)
    with emitter.lock.held():
        emitter.flush()
        emitter.probability = probability
        for name, stream in emitter.streams.items():
            keep_rows(emitter, name, stream)


def keep_rows(emitter: KeptRows, name: str, stream: OutStream) -> None:
    """Gives a stream its shedder, and the option of its segments. Without any shedder the component itself sheds."""
    shedder = stream.shedder = emitter.shedders.get(name)
    stream.kept = kept_option(emitter.probability) if shedder is not None or not emitter.shedders else b""
    if shedder is not None:
        ids = [stream.ids] if isinstance(stream, RootStream) else []
        shedder.row_lists = [stream.rows, *stream.routes.row_lists(), *ids]
