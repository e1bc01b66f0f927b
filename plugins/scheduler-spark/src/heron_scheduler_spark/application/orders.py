"""Makes the orders of a job, and holds the keys of the link over which tasks report."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import msgspec

from heron.driver_kit.core_version import core_version
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.links import TopologyKeys, decode_keys, encode_keys, new_keys
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError, StateError
from heron.planner.packing_plan import Resource
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark.messages.task_messages import Order
from heron_scheduler_spark.settings.container_request import ContainerRequest, container_request
from heron_scheduler_spark.settings.master import Master
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.redacted_spec import redact_spec
from heron_scheduler_spark.settings.shipped_code import code_names

__all__ = ["Orders"]


class Orders:
    """Makes an `Order` for each start of a container.

    A task on this machine gets the paths of files of mode 0600. A task on another machine gets a spec without secrets,
    and reads the topology's keys from the state manager.
    """

    def __init__(self, folder: JobFolder, record: JobRecord, options: SparkOptions, master: Master) -> None:
        """Raises StateError when the topology's keys are needed and cannot be read."""
        self._folder = folder
        self._record = record
        self._options = options
        self._here = master.here
        self._heap_only = master.counts_heap_only
        self._key_file = folder.path / "spark.keys"
        self.keys = self._new_keys() if master.here else self._topology_keys()

    def order(self, container_id: int, ticket: str, endpoint: str) -> str:
        """Return the order for one start, as JSON. Raises OSError, ValueError or SchedulerError if that fails."""
        path = self._folder.spec_file(container_id)
        order = Order(
            container_id,
            ticket,
            endpoint,
            core_version(),
            silence_s=self._options.task_silence_s,
            grace_s=self._record.grace_s,
            command=self._record.executor,
            key_file=str(self._key_file) if self._here else "",
            spec_file=str(path) if self._here else "",
            py_files=code_names(self._options.py_files),
            spec=None if self._here else redact_spec(json.loads(path.read_bytes())),
        )
        return msgspec.json.encode(order).decode()

    def request(self, container_id: int) -> ContainerRequest:
        """Return the request to Spark for one container. Raises as `order` does."""
        return self._request(json.loads(self._folder.spec_file(container_id).read_bytes()))

    def requests(self) -> list[ContainerRequest]:
        """Return the requests for all present containers of the job. Raises as `order` does."""
        return [self._request(json.loads(each)) for each in self._specs()]

    def first_spec(self) -> ContainerSpec:
        """Return the spec of one container; specs differ only in the container. Raises as `order` does."""
        return msgspec.json.decode(next(self._specs()), type=ContainerSpec)

    def _specs(self) -> Iterator[bytes]:
        """Yield at least one spec. An update may remove containers meanwhile."""
        some = False
        for container_id in self._folder.container_ids():
            with contextlib.suppress(FileNotFoundError):
                yield self._folder.spec_file(container_id).read_bytes()
                some = True
        if not some:
            msg = f"topology {self._record.topology!r} has no container left"
            raise SchedulerError(msg)

    def _request(self, spec: dict[str, object]) -> ContainerRequest:
        required = msgspec.convert(spec["required"], Resource)
        return container_request(required, self._options.jvm_heap_mb, heap_only=self._heap_only)

    def _new_keys(self) -> TopologyKeys:
        keys = new_keys()
        write_private(self._key_file, encode_keys(keys))
        return keys

    def _topology_keys(self) -> TopologyKeys:
        statemgr = open_statemgr(self.first_spec().statemgr)
        try:
            node = statemgr.get(NodeKind.KEYS, self._record.topology)
        finally:
            statemgr.close()
        if node is None:
            msg = f"the state manager has no keys of topology {self._record.topology!r}; it was killed meanwhile"
            raise StateError(msg)
        return decode_keys(node.value, self._record.topology)
