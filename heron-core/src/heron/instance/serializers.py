"""The serializers that a task uses: one for what it emits, and each of the topology for what it may receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.api.api_constants import TOPOLOGY_SERIALIZER
from heron.api.config import setting
from heron.driver_kit.loading import open_driver
from heron.errors import PluginError, RemoteProtocolError, known
from heron.instance.batch_codec import PICKLE
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer

__all__ = ["Serializers"]

_PICKLE_NAME = "pickle"


class Serializers:
    """The core's own and those that the command has found for this topology."""

    def __init__(self, refs: Sequence[DriverRef] = ()) -> None:
        self._by_name: dict[str, Serializer] = {_PICKLE_NAME: PICKLE}
        for ref in refs:
            self._by_name[ref.name] = open_driver(ref, Serializer)
        self._by_encoding = {each.encoding: each for each in self._by_name.values()}

    def chosen(self, config: Mapping[str, object]) -> Serializer:
        """The one that a component with this configuration encodes with.

        Raises:
            PluginError: when the command did not find it: it submitted another configuration.
        """
        name = str(setting(config, TOPOLOGY_SERIALIZER))
        if name not in self._by_name:
            msg = f"{TOPOLOGY_SERIALIZER}: no serializer {name!r} was submitted; there are {known(self._by_name)}"
            raise PluginError(msg)
        return self._by_name[name]

    def reading(self, encoding: int, source_task: int) -> Serializer:
        """The one that decodes an encoding.

        Raises:
            RemoteProtocolError: when the topology has none for it.
        """
        serializer = self._by_encoding.get(encoding)
        if serializer is None:
            there = known(map(str, sorted(self._by_encoding)))
            msg = f"segment of task {source_task} has encoding {encoding}, this side reads {there}"
            raise RemoteProtocolError(msg)
        return serializer
