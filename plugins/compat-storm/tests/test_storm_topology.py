"""Topologies as Storm's client has written them. `StormTopologies.java` in tests/e2e/topologies has made the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.api import Grouping
from heron.errors import TopologyError
from heron_compat_storm.storm_topology import decode_storm_topology

GOLDEN = Path(__file__).parent / "golden"


def test_components_have_their_streams_and_groupings() -> None:
    """A class of Java as a grouping has no equivalent here."""
    found = decode_storm_topology((GOLDEN / "custom.thrift").read_bytes(), "topology", {})
    assert found.worker_hooks == 0
    numbers = found.components["numbers"]
    assert (numbers.is_spout, numbers.shell, numbers.inputs, numbers.parallelism) == (True, None, (), 1)
    assert [(each.stream_id, each.fields, each.direct) for each in numbers.outputs] == [
        ("default", ("number", "text"), False)
    ]
    assert {
        name: (each.parallelism, each.inputs[0].grouping) for name, each in found.components.items() if each.inputs
    } == {
        "modulo": (3, None),
        "everyone": (2, None),
        "plain": (2, Grouping.SHUFFLE),
        "partial": (4, None),
        "whole": (2, Grouping.ALL),
        "first": (2, Grouping.GLOBAL),
        "near": (2, Grouping.LOCAL_OR_SHUFFLE),
    }


def test_a_component_in_another_language_has_its_command() -> None:
    """It needs no JVM."""
    found = decode_storm_topology((GOLDEN / "shell.thrift").read_bytes(), "topology", {})
    assert {name: each.shell for name, each in found.components.items() if each.shell} == {
        "shout": ("python3", "shout.py")
    }


def test_fields_and_configurations_are_read() -> None:
    """The stateful bolt of Storm brings a spout, and streams of its own."""
    found = decode_storm_topology((GOLDEN / "stateful.thrift").read_bytes(), "topology", {})
    counts = found.components["counts"]
    assert sorted((each.component, each.stream) for each in counts.inputs) == [
        ("$checkpointspout", "$checkpoint"),
        ("numbers", "default"),
    ]
    groupings = {each.component: each.grouping for each in counts.inputs}
    assert groupings == {"numbers": Grouping.fields("text"), "$checkpointspout": Grouping.ALL}
    assert found.components["$checkpointspout"].outputs[0].fields == ("txid", "action")


@pytest.mark.parametrize("kept", [0, 1, 100, 2000])
def test_cut_bytes_are_refused(kept: int) -> None:
    """The message names the topology."""
    data = (GOLDEN / "custom.thrift").read_bytes()[:kept]
    with pytest.raises(TopologyError, match="topology 'a': is no topology of Storm"):
        decode_storm_topology(data, "topology 'a'", {})
