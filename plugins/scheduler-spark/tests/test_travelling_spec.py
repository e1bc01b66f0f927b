"""A container's spec on its way through Spark, which anybody with access to the cluster may read."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.driver import DriverRef, ReferringOption
from heron.spi.scheduler import ContainerSpec
from heron_scheduler_spark.travelling_spec import resolved_spec, travelling_spec

SECRET = "kept-to-itself-4711"


def spec(statemgr: DriverRef, *sinks: DriverRef) -> dict[str, object]:
    uploader = DriverRef("uploader", "localfs", "m:C", {"root": "/packages"})
    made = ContainerSpec("t", "t-1", 1, 1, "/run", "/log", "file:x", statemgr, uploader, sinks)
    found = json.loads(json.dumps(asdict(made)))
    assert isinstance(found, dict)
    return found


def test_a_secret_of_a_file_is_read_anew_on_the_worker(tmp_path: Path) -> None:
    """It does not travel, and the worker's own is what counts."""
    here = tmp_path / "password"
    here.write_text(f"{SECRET}\n")
    here.chmod(0o600)
    referring = (ReferringOption(("users", 0, "password"), f"${{file:{here}}}"),)
    options: dict[str, object] = {"users": [{"name": "me", "password": SECRET}]}
    travelling = travelling_spec(spec(DriverRef("statemgr", "zk", "m:C", options, (SECRET,), referring)))
    assert SECRET not in json.dumps(travelling)
    here.write_text("another-one")
    statemgr = resolved_spec(travelling)["statemgr"]
    assert isinstance(statemgr, dict)
    assert statemgr["options"]["users"][0] == {"name": "me", "password": "another-one"}
    assert statemgr["secrets"] == ["another-one"]


def test_what_a_variable_stood_for_travels_unless_it_is_a_secret() -> None:
    """The variables of the command's environment are not the workers'."""
    referring = (ReferringOption(("hosts",), "${env:HOSTS}"),)
    public = DriverRef("statemgr", "zk", "m:C", {"hosts": "zk1:2181"}, (), referring)
    travelling = travelling_spec(spec(public))["statemgr"]
    assert isinstance(travelling, dict)
    assert travelling["options"] == {"hosts": "zk1:2181"}


@pytest.mark.parametrize("referring", [(), (ReferringOption(("password",), "${env:PASSWORD}"),)])
def test_any_other_secret_is_refused_without_being_shown(referring: tuple[ReferringOption, ...]) -> None:
    """Before anything is started; the message names the driver and the remedy."""
    sink = DriverRef("metricsink", "graphite", "m:C", {"password": SECRET}, (SECRET,), referring)
    with pytest.raises(SchedulerError, match=r"metricsink.*'graphite'.*\$\{file:PATH\}") as caught:
        travelling_spec(spec(DriverRef("statemgr", "localfs", "m:C"), sink))
    assert SECRET not in str(caught.value)


def test_a_secret_that_the_worker_lacks_is_named_by_its_path(tmp_path: Path) -> None:
    """The file has to be on every worker, with mode 0600: the message says which one is not."""
    referring = (ReferringOption(("password",), f"${{file:{tmp_path}/absent}}"),)
    made = DriverRef("statemgr", "zk", "m:C", {"password": SECRET}, (SECRET,), referring)
    with pytest.raises(SchedulerError, match="absent"):
        resolved_spec(travelling_spec(spec(made)))
