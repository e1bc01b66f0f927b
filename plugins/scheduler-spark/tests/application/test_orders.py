"""The orders of a job: the driver sees its present containers, not those of the submission."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron.planner.packing_plan import Resource
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark.application.orders import Orders
from heron_scheduler_spark.settings.container_request import ContainerRequest
from heron_scheduler_spark.settings.master import parse_master
from heron_scheduler_spark.settings.options import SparkOptions

_MB = 1024 * 1024
_UNUSED = DriverRef("none", "none", "none:None")
RECORD = JobRecord("t", "t-1", False, (), "/log", ("/run",), 0.1, 10.0, 30.0, 4.0)
SPEC = ContainerSpec("t", "t-1", 0, 1, "/run", "/log", "file:x", _UNUSED, _UNUSED)


def test_a_new_driver_starts_with_the_containers_of_the_last_update(tmp_path: Path) -> None:
    """A removed container has no spec; an added one counts for slots and for the size of the cluster."""
    folder = JobFolder(tmp_path)
    orders = Orders(folder, RECORD, SparkOptions(), parse_master("local"))
    for number in (0, 1, 3):
        spec = replace(SPEC, container_id=number, required=Resource(number, 100 * number * _MB, 0))
        write_private(folder.spec_file(number), msgspec.json.encode(spec))
    folder.spec_file(0).unlink()
    assert orders.requests() == [ContainerRequest(1, 100, 512), ContainerRequest(3, 300, 512)]
    assert orders.first_spec().container_id == 1
    for number in (1, 3):
        folder.spec_file(number).unlink()
    with pytest.raises(SchedulerError, match="'t' has no container left"):
        orders.requests()
