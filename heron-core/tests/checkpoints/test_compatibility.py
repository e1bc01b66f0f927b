"""Which topologies can start from a checkpoint."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heron.api.api_constants import TOPOLOGY_KEY_GROUPS
from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.checkpoints.compatibility import check_compatible
from heron.checkpoints.manifest import CheckpointManifest, Place, TaskSnapshot
from heron.errors import CheckpointError, TopologyError

PLACE = Place("words/words-1/0000000007/task-1", 0, 10, 1)
LINES = TaskSnapshot(1, "lines", operator=PLACE)
COUNTS = (TaskSnapshot(2, "count", groups={0: PLACE}), TaskSnapshot(3, "count"))
MANIFEST = CheckpointManifest("words", "words-1", 7, 1e9, 0.1, 8, (LINES, *COUNTS))


def topology(groups: object = 8, **parallelism: int) -> TopologyDefinition:
    """Return a topology with these components."""
    components = tuple(ComponentDefinition(each, ComponentKind.BOLT, "m:C", n) for each, n in parallelism.items())
    return TopologyDefinition("words", components, {TOPOLOGY_KEY_GROUPS: groups})


@pytest.mark.parametrize("counts", [1, 2, 5])
def test_keyed_state_fits_any_parallelism(counts: int) -> None:
    """Whole key groups move between tasks."""
    check_compatible(MANIFEST, topology(lines=1, count=counts))


def test_a_component_without_state_may_leave_and_change() -> None:
    """Nothing of it has to be restored."""
    stateless = (TaskSnapshot(4, "print"), TaskSnapshot(5, "print"))
    manifest = replace(MANIFEST, tasks=(*MANIFEST.tasks, *stateless))
    check_compatible(manifest, topology(lines=1, count=2))
    check_compatible(manifest, topology(lines=1, count=2, print=3, new=1))


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        (
            topology(16, lines=1, count=2),
            "words-1/7 has 8 key groups, the topology has 16; set topology.key.groups to 8",
        ),
        (topology(lines=1, counts=2), "state of component 'count', the topology has the components 'counts', 'lines'"),
        (topology(lines=2, count=2), "for 1 tasks of component 'lines', the topology has 2; set its parallelism to 1"),
    ],
)
def test_state_without_a_place_is_refused(definition: TopologyDefinition, error: str) -> None:
    """A start would lose it. The error has both values and the remedy."""
    with pytest.raises(CheckpointError, match=error):
        check_compatible(MANIFEST, definition)


def test_a_wrong_number_of_key_groups_is_an_error_of_the_topology() -> None:
    """The checkpoint is not the cause."""
    with pytest.raises(TopologyError, match="is not an integer"):
        check_compatible(MANIFEST, topology("8", lines=1, count=2))
