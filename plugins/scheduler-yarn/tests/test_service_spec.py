"""The services of a topology: what a person finds there, and what YARN is asked for."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields, items
from heron_scheduler_yarn.options import YarnOptions
from heron_scheduler_yarn.service_spec import new_service_name, service_spec

_REQUESTS = (ContainerRequest(0, "0", 0.6, 512), ContainerRequest(1, "1", 2.1, 1152, 100))
_JOB = ManagedJob("words", "words-1", "ann", "team", "prod", _REQUESTS)
_FILES = {"0": "/heron/0.launch", "1": "/heron/1.launch"}


def _spec(**options: object) -> Json:
    return service_spec("heron-words-1a", _JOB, _FILES, decode_options(options, YarnOptions, "scheduler"))


def test_a_person_finds_topology_run_and_owner() -> None:
    """`yarn app -status` shows the properties of a service."""
    properties = fields(fields(_spec()["configuration"])["properties"])
    labels = {"topology": "words", "run": "words-1", "owner": "ann", "role": "team", "env": "prod"}
    assert labels.items() <= {key.removeprefix("heron."): value for key, value in properties.items()}.items()


def test_each_container_is_a_component_with_its_own_size_and_file() -> None:
    """YARN counts whole cores; a component has the launch file of its container and no other one."""
    components = items(_spec()["components"])
    assert [each["name"] for each in components] == ["container-0", "container-1"]
    assert [each["resource"] for each in components] == [{"cpus": 1, "memory": "512"}, {"cpus": 3, "memory": "1152"}]
    files = [items(fields(each["configuration"])["files"]) for each in components]
    assert files[1] == [{"type": "STATIC", "src_file": "/heron/1.launch", "dest_file": "launch"}]


def test_a_service_has_only_the_places_with_a_file() -> None:
    """The other containers of the job are in other services."""
    made = service_spec("heron-words-2b", _JOB, {"1": "/heron/1.launch"}, YarnOptions())
    assert [each["name"] for each in items(made["components"])] == ["container-1"]


def test_the_queue_is_that_of_the_profile() -> None:
    """Without one, YARN chooses by its own rules."""
    assert _spec(queue="root.streams")["queue"] == "root.streams"
    assert "queue" not in _spec()


def test_the_rules_of_the_profile_choose_nodes() -> None:
    """YARN refuses rules unless its resource manager is set up for them, so there are none without the options."""
    assert "placement_policy" not in items(_spec()["components"])[0]
    labelled = items(_spec(node_label="fast")["components"])[1]
    fast = {"type": "AFFINITY", "scope": "NODE", "node_partitions": ["fast"]}
    assert labelled["placement_policy"] == {"constraints": [fast]}
    options = YarnOptions(spread=True)
    with_standby = replace(_JOB, containers=(*_REQUESTS, ContainerRequest(2, "2", 1.0, 64)), standbys=1)
    files = {**_FILES, "2": "/heron/2.launch"}
    manager, standby, other = items(service_spec("heron-words-1a", with_standby, files, options)["components"])
    apart = {"type": "ANTI_AFFINITY", "scope": "NODE", "target_tags": ["container-0", "container-1"]}
    assert manager["placement_policy"] == standby["placement_policy"] == {"constraints": [apart]}
    (anywhere,) = items(fields(other["placement_policy"])["constraints"])
    assert (anywhere["type"], anywhere["target_tags"]) == ("AFFINITY_WITH_CARDINALITY", ["container-2"])
    later = service_spec("heron-words-2b", with_standby, {"2": "/heron/2.launch"}, options)
    assert "placement_policy" not in items(later["components"])[0]


@pytest.mark.parametrize(
    "wheels", [{}, {"install": "wheels", "wheels": f"https://files/it's/$HOME/`a`#sha256={'0' * 64}"}]
)
def test_the_shell_of_a_container_gives_the_words_of_the_command(tmp_path: Path, wheels: dict[str, str]) -> None:
    """The node manager writes a script, with the command in double quotes and its variables as ``$NAME``."""
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\nprintf '%s\\0' "$@"\n""")
    python.chmod(0o700)
    options = {"python": str(python), **wheels}
    command = str(items(_spec(**options)["components"])[0]["launch_command"])
    script = f'exec /bin/bash -c "{command}"'.replace("{{", "$").replace("}}", "")
    environment = {"PATH": os.environ["PATH"], HOST_ADDRESS: "192.0.2.1"}
    got = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=True, capture_output=True)
    asked = decode_options(options, YarnOptions, "scheduler").python_command(
        "heron_scheduler_kit.managed.launcher", "launch", folder=f"{tmp_path}/wheels"
    )
    assert got.stdout.decode().split("\0")[:-1] == list(asked[1:])


@pytest.mark.parametrize("topology", ["words", "Word_Count", "__", "A" * 200, "-x-"])
def test_names_of_services_are_labels_of_dns(topology: str) -> None:
    """YARN refuses others. Two services of a topology have different names."""
    first, second = new_service_name(topology), new_service_name(topology)
    assert re.fullmatch(r"heron(-[a-z0-9]+)+", first)
    assert len(first) <= 63
    assert first != second


@pytest.mark.parametrize(
    "options",
    [{"python": 'py"thon'}, {"python": "python $HOME"}, {"queue": "a b"}, {"root": "relative"}, {"address": "host:1"}],
)
def test_options_that_break_a_command_or_a_path_are_refused(options: dict[str, object]) -> None:
    """The error names the option."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        _spec(**options)
