"""Declared output streams; how they are divided among tasks stands in `heron.api.grouping`."""

from __future__ import annotations

from collections.abc import Sequence

from heron.api.author_name import checked_fields, checked_name, is_a
from heron.api.definition import DEFAULT_STREAM, StreamDefinition
from heron.api.grouping import Grouping
from heron.errors import TopologyError

__all__ = ["Grouping", "Stream", "merged_outputs"]  # both nouns stand here in heronpy


class Stream:
    """A named output: ``outputs = ["word", Stream(fields=["line", "reason"], name="error")]``.

    A `direct` stream may be consumed only with ``Grouping.DIRECT``: its emitter names the task of each tuple.

    Raises:
        TopologyError: when a name or field is no string, is empty, or a field is named twice.
    """

    __slots__ = ("direct", "fields", "stream_id")

    DEFAULT_STREAM_ID = DEFAULT_STREAM

    def __init__(self, fields: Sequence[str] | None = None, name: str = DEFAULT_STREAM, direct: bool = False) -> None:
        if fields is not None and not isinstance(fields, list | tuple):
            msg = f"stream {name!r}: fields {fields!r} are no list or tuple; give ['field', ...]"
            raise TopologyError(msg)
        if not is_a(direct, bool):
            msg = f"stream {name!r}: direct is {direct!r}; give True or False"
            raise TopologyError(msg)
        self.stream_id = checked_name(name, "stream")
        self.fields = checked_fields(fields or (), f"stream {name!r}")
        self.direct = direct

    def __repr__(self) -> str:
        return f"Stream(fields={list(self.fields)!r}, name={self.stream_id!r}, direct={self.direct!r})"


def merged_outputs(outputs: Sequence[str | Stream], place: str) -> tuple[StreamDefinition, ...]:
    """The declared outputs as streams; plain strings are fields of the default stream, in order.

    Raises:
        TopologyError: when an output is neither string nor `Stream`, or a stream is declared twice.
    """
    if not isinstance(outputs, list | tuple):
        msg = f"{place}: outputs {outputs!r} are no list or tuple; give ['field', Stream(...), ...]"
        raise TopologyError(msg)
    fields_by_stream: dict[str, list[str]] = {}
    for output in outputs:
        if isinstance(output, str):
            fields_by_stream.setdefault(DEFAULT_STREAM, []).append(output)
        elif not isinstance(output, Stream):
            msg = f"{place}: the output {output!r} is neither a field's name nor a Stream; give one of them"
            raise TopologyError(msg)
        elif output.stream_id in fields_by_stream and output.stream_id != DEFAULT_STREAM:
            msg = f"{place}: the stream {output.stream_id!r} is declared twice; declare it once"
            raise TopologyError(msg)
        else:
            fields_by_stream.setdefault(output.stream_id, []).extend(output.fields)
    return tuple(
        StreamDefinition(name, checked_fields(fields, f"{place}, stream {name!r}"))
        for name, fields in fields_by_stream.items()
    )
