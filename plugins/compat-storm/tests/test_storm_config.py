"""What becomes of Storm's configuration keys."""

from __future__ import annotations

import pytest

from heron.errors import ConfigError
from heron_compat_storm.storm_config import component_config, topology_config


def test_a_topology_without_keys_is_at_least_once_in_one_container() -> None:
    """Storm has an acker for each worker, and one worker, unless a topology says something else."""
    assert topology_config({}, "topology").heron == {
        "topology.stmgrs": 1,
        "topology.reliability.mode": "ATLEAST_ONCE",
    }


def test_keys_are_mapped_taken_over_or_named_as_ignored() -> None:
    """The JVMs get all of them but the secrets of Storm's own ZooKeeper."""
    conf = {
        "topology.workers": 3,
        "topology.acker.executors": 0,
        "topology.message.timeout.secs": 60,
        "topology.max.spout.pending": 500,
        "topology.debug": True,
        "topology.tick.tuple.freq.secs": 0,
        "topology.worker.childopts": "-Xmx1g '-Da=b c'",
        "topology.worker.gc.childopts": ["-XX:+UseG1GC", "-Xlog:gc:worker-%ID%.log"],
        "topology.kryo.register": ["a.B"],
        "topology.bolts.window.length.count": 30,
        "topology.transfer.buffer.size": 1000,
        "topology.auto.task.hooks": ["a.Hook"],
        "topology.priority": None,
        "own.key": [1],
        "storm.zookeeper.topology.auth.payload": "secret",
    }
    found = topology_config(conf, "topology")
    assert found.heron == {
        "topology.stmgrs": 3,
        "topology.reliability.mode": "ATMOST_ONCE",
        "topology.message.timeout.secs": 60,
        "topology.max.spout.pending": 500,
        "topology.debug": True,
    }
    assert found.java_options == ("-Xmx1g", "-Da=b c", "-XX:+UseG1GC")
    assert found.ignored == ("topology.auto.task.hooks", "topology.transfer.buffer.size")
    assert found.storm["own.key"] == [1]
    assert found.storm["topology.fall.back.on.java.serialization"] is True
    assert not {"storm.zookeeper.topology.auth.payload", "topology.priority"} & found.storm.keys()


def test_a_component_has_its_own_keys() -> None:
    """A setting of the whole topology has no effect in a component, as in Storm."""
    conf = {
        "topology.tick.tuple.freq.secs": 5,
        "topology.tasks": 8,
        "topology.max.task.parallelism": 5,
        "topology.component.resources.onheap.memory.mb": 256.0,
        "topology.message.timeout.secs": 9,
        "topology.bolts.window.length.count": 30,
        "own": 1,
    }
    found = component_config(conf, "component 'a'")
    assert found.heron == {"topology.tick.tuple.freq.secs": 5}
    assert (found.tasks, found.most_tasks, found.java_options) == (8, 5, ("-Xmx256m",))
    assert found.ignored == ("topology.message.timeout.secs",)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("topology.workers", 0, "0 is not a whole number of at least 1"),
        ("topology.workers", "three", "'three' is not a whole number"),
        ("topology.acker.executors", -1, "-1 is not a whole number of at least 0"),
        ("topology.worker.childopts", "-Da='b", r"\"-Da='b\": No closing quotation; give '-Xmx256m'"),
        ("topology.worker.childopts", 5, "5 is neither text nor a list of text"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(key: str, value: object, problem: str) -> None:
    """Storm's own checks have not refused it."""
    with pytest.raises(ConfigError, match=f"topology 'a': {key}: {problem}"):
        topology_config({key: value}, "topology 'a'")
