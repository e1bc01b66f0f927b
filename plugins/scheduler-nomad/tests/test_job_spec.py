"""The objects of a job in Nomad: what a person finds there, and what an update leaves alone."""

from __future__ import annotations

import json

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields, items
from heron_scheduler_nomad.job_spec import changed_job, job_name, launch_variable
from heron_scheduler_nomad.options import NomadOptions

_REQUESTS = (ContainerRequest(0, "container-0", 0.6, 512), ContainerRequest(1, "container-1", 2.1, 1152, 100))
_JOB = ManagedJob("words", "words-1", "ann", "team", "prod", _REQUESTS)


def _groups(job: Json) -> dict[str, Json]:
    return {str(each["Name"]): each for each in items(job["TaskGroups"])}


def test_a_person_finds_topology_container_and_owner() -> None:
    """`nomad job status` shows the name, and the meta of job and group have the rest."""
    made = changed_job(_JOB, NomadOptions(), {})
    assert made["ID"] == made["Name"] == "heron-words"
    labels = {"topology": "words", "run": "words-1", "owner": "ann", "role": "team", "env": "prod"}
    assert made["Meta"] == {f"heron_{key}": value for key, value in labels.items()}
    groups = _groups(made)
    assert list(groups) == ["container-0", "container-1"]
    assert groups["container-1"]["Meta"] == {"heron_container": "1"}


def test_requests_become_megahertz_and_megabytes() -> None:
    """Nomad counts processors in MHz; the logs of a task are a part of its disk."""
    made = changed_job(_JOB, NomadOptions(cpu_mhz=2500), {})
    (task,) = items(_groups(made)["container-1"]["Tasks"])
    assert task["Resources"] == {"CPU": 5250, "MemoryMB": 1152}
    disk = fields(_groups(made)["container-1"]["EphemeralDisk"])["SizeMB"]
    logs = fields(task["LogConfig"])
    assert isinstance(disk, int)
    assert disk > 100 + 2 * int(str(logs["MaxFiles"])) * int(str(logs["MaxFileSizeMB"]))


def test_an_update_leaves_registered_groups_as_they_are() -> None:
    """Nomad starts a group again whose spec differs, so another profile must not change those that run."""
    registered = {**changed_job(_JOB, NomadOptions(python="/first/python"), {}), "JobModifyIndex": 7}
    kept = _groups(registered)["container-1"]
    more = ContainerRequest(2, "container-2", 1.1, 640)
    changed = ManagedJob("words", "words-1", containers=(_REQUESTS[1], more))
    made = changed_job(changed, NomadOptions(python="/second/python", priority=80), registered)
    assert list(_groups(made)) == ["container-1", "container-2"]
    assert _groups(made)["container-1"] == kept
    assert "/second/python" in json.dumps(_groups(made)["container-2"])
    assert (made["Priority"], made["Meta"]) == (50, registered["Meta"])


def test_a_job_that_was_stopped_by_hand_runs_again() -> None:
    """`nomad job stop` marks a job; an update of the topology starts it."""
    registered = {**changed_job(_JOB, NomadOptions(), {}), "Stop": True}
    assert changed_job(_JOB, NomadOptions(), registered)["Stop"] is False


def test_an_image_uses_the_network_of_its_client() -> None:
    """Stream managers connect to each other's ports, which they choose."""
    made = changed_job(_JOB, NomadOptions(task_driver="docker", image="heron:1", task_config={"init": True}), {})
    (task,) = items(_groups(made)["container-0"]["Tasks"])
    config = fields(task["Config"])
    assert (config["image"], config["network_mode"], config["init"]) == ("heron:1", "host", True)


def test_clients_are_chosen_by_constraints() -> None:
    """At most one container on a client keeps standbys apart."""
    options = NomadOptions(constraints=(("${attr.kernel.name}", "=", "linux"),), containers_per_client=1)
    made = changed_job(_JOB, options, {})
    assert [each["Operand"] for each in items(made["Constraints"])] == ["=", "distinct_property"]


def test_long_names_differ_and_fit() -> None:
    """The path of a variable has at most 128 characters, and a topology name 200."""
    first, second = "t" * 199 + "1", "t" * 199 + "2"
    assert job_name(first) != job_name(second)
    assert len(launch_variable(first, "container-1000000")) <= 128


def test_the_command_of_the_launcher_cannot_be_replaced() -> None:
    """A profile that does it would start something else."""
    with pytest.raises(ConfigError, match="command"):
        decode_options({"task_config": {"command": "sh"}}, NomadOptions, "scheduler")


def _rules(group: Json) -> list[str]:
    return [str(each["RTarget"]) for each in items(group.get("Constraints"))]


def test_new_groups_keep_away_from_blocked_clients() -> None:
    """The name is that of `nomad node status`; what runs is not moved by a submission or an update."""
    registered = changed_job(_JOB, NomadOptions(), {})
    more = ContainerRequest(2, "container-2", 1.1, 640)
    grown = ManagedJob("words", "words-1", containers=(*_REQUESTS, more))
    made = _groups(changed_job(grown, NomadOptions(), registered, {"client-b", "client-a"}))
    assert _rules(made["container-2"]) == ["client-a", "client-b"]
    assert items(made["container-2"]["Constraints"])[0] == {
        "LTarget": "${node.unique.name}",
        "Operand": "!=",
        "RTarget": "client-a",
    }
    assert made["container-1"] == _groups(registered)["container-1"]


def test_only_the_container_that_moves_gets_other_constraints() -> None:
    """Nomad replaces the allocation of a group whose client does not fit any more; the others go on."""
    registered = changed_job(_JOB, NomadOptions(), {})
    made = _groups(changed_job(_JOB, NomadOptions(), registered, {"client-a"}, "container-1"))
    assert _rules(made["container-1"]) == ["client-a"]
    assert made["container-0"] == _groups(registered)["container-0"]
    again = _groups(changed_job(_JOB, NomadOptions(), {"TaskGroups": list(made.values())}, (), "container-1"))
    assert _rules(again["container-1"]) == []
