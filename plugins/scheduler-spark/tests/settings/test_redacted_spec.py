"""A container's spec inside Spark, where everybody with access to the cluster may read it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.driver import DriverRef, ReferringOption
from heron.spi.scheduler import ContainerSpec, ServiceSpec
from heron_scheduler_spark.settings.redacted_spec import redact_spec, resolve_spec

SECRET = "kept-to-itself-4711"


def spec(statemgr: DriverRef, *sinks: DriverRef) -> dict[str, object]:
    uploader = DriverRef("uploader", "localfs", "m:C", {"root": "/packages"})
    made = ContainerSpec("t", "t-1", 1, 1, "/run", "/log", "file:x", statemgr, uploader, sinks)
    found = json.loads(json.dumps(asdict(made)))
    assert isinstance(found, dict)
    return found


def test_the_worker_reads_the_secret_of_a_file_itself(tmp_path: Path) -> None:
    """The secret does not travel, and the file of the worker counts."""
    here = tmp_path / "password"
    here.write_text(f"{SECRET}\n")
    here.chmod(0o600)
    referring = (ReferringOption(("users", 0, "password"), f"${{file:{here}}}"),)
    options: dict[str, object] = {"users": [{"name": "me", "password": SECRET}]}
    redacted = redact_spec(spec(DriverRef("statemgr", "zk", "m:C", options, (SECRET,), referring)))
    assert SECRET not in json.dumps(redacted)
    here.write_text("another-one")
    statemgr = resolve_spec(redacted)["statemgr"]
    assert isinstance(statemgr, dict)
    assert statemgr["options"]["users"][0] == {"name": "me", "password": "another-one"}
    assert statemgr["secrets"] == ["another-one"]


def test_the_value_of_a_variable_travels_unless_it_is_a_secret() -> None:
    """Workers do not have the environment of the command."""
    referring = (ReferringOption(("hosts",), "${env:HOSTS}"),)
    public = DriverRef("statemgr", "zk", "m:C", {"hosts": "zk1:2181"}, (), referring)
    redacted = redact_spec(spec(public))["statemgr"]
    assert isinstance(redacted, dict)
    assert redacted["options"] == {"hosts": "zk1:2181"}


def test_the_secret_of_a_checkpoint_store_does_not_travel(tmp_path: Path) -> None:
    """Only topologies with checkpoints have the store in their specs."""
    here = tmp_path / "password"
    here.write_text(SECRET)
    here.chmod(0o600)
    referring = (ReferringOption(("secret_key",), f"${{file:{here}}}"),)
    store = DriverRef("checkpoint", "s3", "m:C", {"secret_key": SECRET}, (SECRET,), referring)
    redacted = redact_spec(spec(DriverRef("statemgr", "localfs", "m:C")) | {"checkpoint": asdict(store)})
    assert SECRET not in json.dumps(redacted)
    found = resolve_spec(redacted)["checkpoint"]
    assert isinstance(found, dict)
    assert found["options"] == {"secret_key": SECRET}


@pytest.mark.parametrize("referring", [(), (ReferringOption(("password",), "${env:PASSWORD}"),)])
def test_any_other_secret_is_refused_without_being_shown(referring: tuple[ReferringOption, ...]) -> None:
    """The message names the driver and the remedy."""
    sink = DriverRef("metricsink", "graphite", "m:C", {"password": SECRET}, (SECRET,), referring)
    with pytest.raises(SchedulerError, match=r"metricsink.*'graphite'.*\$\{file:PATH\}") as caught:
        redact_spec(spec(DriverRef("statemgr", "localfs", "m:C"), sink))
    assert SECRET not in str(caught.value)


def test_a_secret_that_the_worker_lacks_is_named_by_its_path(tmp_path: Path) -> None:
    """The file must be on every worker, with mode 0600."""
    referring = (ReferringOption(("password",), f"${{file:{tmp_path}/absent}}"),)
    made = DriverRef("statemgr", "zk", "m:C", {"password": SECRET}, (SECRET,), referring)
    with pytest.raises(SchedulerError, match="absent"):
        resolve_spec(redact_spec(spec(made)))


def test_the_drivers_of_a_service_are_redacted_too(tmp_path: Path) -> None:
    """The health manager gets drivers with secrets of its own."""
    here = tmp_path / "token"
    here.write_text(SECRET)
    here.chmod(0o600)
    referring = (ReferringOption(("token",), f"${{file:{here}}}"),)
    policy = DriverRef("health", "own", "m:C", {"token": SECRET}, (SECRET,), referring)
    made = spec(DriverRef("statemgr", "zk", "m:C"))
    made["services"] = [json.loads(json.dumps(asdict(ServiceSpec("health", "m", drivers=(policy,)))))]
    redacted = redact_spec(made)
    assert SECRET not in json.dumps(redacted)
    assert SECRET in json.dumps(resolve_spec(redacted))
