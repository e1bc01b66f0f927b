"""The serializers of a task: one for what it emits, and each one of the topology for what it may receive."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from heron.api.api_constants import TOPOLOGY_SERIALIZER
from heron.api.config import setting
from heron.driver_kit.loading import open_driver
from heron.errors import ConfigError, PluginError, RemoteProtocolError, known
from heron.instance.codec.pickled_rows import PROTOCOL, RowPickles, SharedError, pickled, row_pickles, without_cycle
from heron.instance.codec.pickled_values import decode_each, decode_each_row
from heron.spi.column_serializer import ColumnSerializer
from heron.spi.driver import DriverRef
from heron.spi.serializer import SPI_VERSION, Encoding, Serializer

__all__ = ["COLUMN_SERIALIZER", "PICKLE", "PICKLE_NAME", "PickleSerializer", "Serializers"]

COLUMN_SERIALIZER = "arrow"
"""The driver that carries columns, whatever encodes the rows of a topology."""

PICKLE_NAME = "pickle"
_PLAIN = DriverRef("serializer", "plain", "heron.instance.codec.plain:PlainSerializer", {})


class Serializers:
    """The serializers of the core, and those that the command found for this topology.

    Each is opened when it is first needed: a library of columns takes 0.15 s and 45 MB, and most tasks need none.
    """

    def __init__(self, refs: Sequence[DriverRef] = ()) -> None:
        self._refs = {_PLAIN.name: _PLAIN} | {ref.name: ref for ref in refs}
        self._opened: dict[str, Serializer] = {PICKLE_NAME: PICKLE}
        self._by_encoding: dict[int, Serializer] = {PICKLE.encoding: PICKLE}

    def for_output(self, config: Mapping[str, object]) -> Serializer:
        """The serializer that a component with this configuration encodes with.

        Raises:
            PluginError: when the command did not submit it, because the configuration was another one.
        """
        return self._named(str(setting(config, TOPOLOGY_SERIALIZER)), TOPOLOGY_SERIALIZER)

    def for_columns(self) -> ColumnSerializer:
        """The serializer of columns.

        Raises:
            PluginError: when the command did not submit it, because no component of the topology said that it uses
                columns.
        """
        serializer = self._named(COLUMN_SERIALIZER, "columns")
        if not isinstance(serializer, ColumnSerializer):
            msg = f"serializer {COLUMN_SERIALIZER!r} is a {type(serializer).__name__}, which carries no columns"
            raise PluginError(msg)
        return serializer

    def for_input(self, encoding: int, source_task: int) -> Serializer:
        """The serializer that decodes an encoding.

        Raises:
            RemoteProtocolError: when the topology has no serializer for it.
        """
        serializer = self._by_encoding.get(encoding)
        if serializer is None:
            for name in self._refs:
                self._named(name, TOPOLOGY_SERIALIZER)
            serializer = self._by_encoding.get(encoding)
        if serializer is None:
            readable = known(map(str, sorted(self._by_encoding)))
            msg = f"segment of task {source_task} has encoding {encoding}; this task reads {readable}"
            raise RemoteProtocolError(msg)
        return serializer

    def _named(self, name: str, what: str) -> Serializer:
        serializer = self._opened.get(name)
        if serializer is None:
            if name not in self._refs:
                submitted = known((*self._opened, *self._refs))
                msg = f"{what}: serializer {name!r} was not submitted; submitted: {submitted}"
                raise PluginError(msg)
            serializer = self._opened[name] = open_driver(self._refs[name], Serializer)
            self._by_encoding[serializer.encoding] = serializer
        return serializer


class PickleSerializer(Serializer):
    """Pickle, protocol 5: the default, for topologies whose components are all written in Python.

    Payloads are trusted: links carry only what the topology itself sends. A task unpickles only what comes from a
    component that has this serializer (`heron.instance.input.batch_reader`).
    """

    spi_version: ClassVar[int] = SPI_VERSION
    capabilities: ClassVar[frozenset[str]] = frozenset({"objects"})
    encoding: ClassVar[int] = int(Encoding.PICKLE)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Opens it; there are no options.

        Raises:
            ConfigError: when an option is given.
        """
        for key in options:
            msg = f"serializer.{key}: unknown key; the serializer 'pickle' has no options"
            raise ConfigError(msg)
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Pickles without the memo where possible.

        The memo costs as much as the rest together. It would also turn a value that was emitted twice into one shared
        object at the receiver, and no value could be decoded without those before it. Values that contain themselves
        need it, and the pickler reports those. Each becomes a pickle inside the pickle. In a large batch, rows that
        are much smaller with a memo become pickles too (`heron.instance.codec.pickled_rows`).
        """
        try:
            return pickled(columns)
        except SharedError as shared:
            return pickle.dumps(RowPickles(shared.rows, len(columns)), PROTOCOL)
        except (ValueError, RecursionError):  # "can't pickle cyclic objects"; some classes recurse
            return pickled([list(map(without_cycle, column)) for column in columns])

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Unpickles; the caller checks the shape of the result."""
        columns: list[Sequence[object]] = pickle.loads(payload)  # noqa: S301  # only from the topology itself
        return columns

    def decode_each(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Unpickles each value alone, or each row where rows share objects."""
        data = bytes(payload)
        rows = row_pickles(data)
        return decode_each(data) if rows is None else decode_each_row(*rows)


PICKLE = PickleSerializer()
