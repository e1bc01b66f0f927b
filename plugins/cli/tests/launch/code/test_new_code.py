"""What may differ in new code, and what is refused with its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from heron.api.definition import GroupingKind, TopologyDefinition
from heron.errors import UsageError
from heron_cli.launch.code.new_code import compared
from heron_testing.builders import bolt, spout, stream, subscription, topology

RUNNING = topology(
    spout("word", stream("word"), entry="wc:Word", parallelism=3, config={"limit": 1}),
    bolt("count", subscription("word", GroupingKind.FIELDS, "word"), entry="wc:Count", parallelism=2),
    name="wc",
    config={"out": "/a", "topology.stateful.start.from": "wc-1/7", "topology.debug": False},
)


def changed(component: str, **changes: Any) -> TopologyDefinition:  # noqa: ANN401  # fields of a component
    """The running topology with another component."""
    components = (replace(each, **changes) if each.name == component else each for each in RUNNING.components)
    return replace(RUNNING, components=tuple(components))


def test_equal_code_changes_nothing() -> None:
    new = compared(RUNNING, RUNNING)
    assert (new.topology, new.changed, new.notes) == (RUNNING, (), ())


def test_classes_and_configuration_may_differ() -> None:
    """The running number of tasks and the checkpoint of the start stay; what changes is said."""
    wanted = changed("word", entry="wc:Word2", parallelism=1, config={"limit": 2, "topology.on.error": "stop"})
    wanted = replace(wanted, config={"out": "/a", "topology.debug": False, "topology.container.cpu": 4})
    new = compared(RUNNING, wanted)
    assert new.changed == ("word",)
    assert new.notes == (
        "word: stays at 3 tasks; the file says 1",
        "word: limit: 1 -> 2",
        'word: topology.on.error: unset -> "stop"',
    )
    assert new.topology.config == RUNNING.config
    assert new.topology.component("word") == replace(wanted.component("word"), parallelism=3)


def test_a_value_of_the_topology_changes_all_components() -> None:
    new = compared(RUNNING, replace(RUNNING, config={**RUNNING.config, "out": "/b"}))
    assert (new.changed, new.notes) == (("word", "count"), ('out: "/a" -> "/b"',))


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (replace(RUNNING, name="other"), "it defines topology 'other'"),
        (replace(RUNNING, components=RUNNING.components[:1]), "component 'count' is missing"),
        (
            replace(RUNNING, components=(*RUNNING.components, bolt("more", subscription("word")))),
            "component 'more' is new",
        ),
        (
            changed("word", outputs=(stream("word", "at"),)),
            "stream 'default' of 'word' has the fields (word, at), not (word)",
        ),
        (changed("word", outputs=()), "'word' has no stream 'default'"),
        (
            changed("count", inputs=(subscription("word"),)),
            "'count' reads word/default (shuffle), not word/default (fields by (word))",
        ),
        (
            replace(RUNNING, config={**RUNNING.config, "topology.key.groups": 8}),
            "topology.key.groups is 8, not unset; submit it again for that",
        ),
    ],
)
def test_another_topology_is_refused(wanted: TopologyDefinition, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        compared(RUNNING, wanted)
    assert reason in str(refused.value)


def test_all_differences_are_in_one_error() -> None:
    """A person mends them in one go."""
    wanted = replace(changed("word", outputs=()), components=changed("word", outputs=()).components[:1])
    with pytest.raises(UsageError, match="component 'count' is missing; 'word' has no stream 'default'"):
        compared(RUNNING, wanted)
