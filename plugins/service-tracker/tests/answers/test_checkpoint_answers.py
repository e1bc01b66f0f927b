"""The checkpoints of a topology: those that statuses told of, and those in the store."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, Place, TaskSnapshot
from heron.ipc.documents.status import CheckpointStatus
from heron_cli.client import ListedCheckpoint, TopologyStatus
from heron_service_tracker.answers.checkpoint_answers import (
    SavedTaskItem,
    checkpoint_item,
    stored_answer,
    stored_checkpoints,
)
from heron_service_tracker.answers.trouble import troubles
from heron_service_tracker.observed.seen_checkpoints import SeenCheckpoints, checkpoints_after
from heron_service_tracker.watches.observations import Observations

MakeStatus = Callable[..., TopologyStatus]


def after(make_status: MakeStatus, *steps: CheckpointStatus | None) -> SeenCheckpoints:
    """The checkpoints that are seen from these statuses, one second after the other from 1000 s."""
    seen: SeenCheckpoints = ()
    statuses = [None, *(make_status(checkpoints=each) for each in steps)]
    for at_s, (before, now) in enumerate(itertools.pairwise(statuses), 1000):
        assert now is not None
        seen = checkpoints_after(seen, before, now, float(at_s))
    return seen


def complete(newest: int, **changes: object) -> CheckpointStatus:
    """A status after a complete checkpoint."""
    fields: dict[str, object] = {"number": newest, "complete": newest, "completed_at_s": 900.0 + newest}
    fields |= {"duration_s": 0.5, "size_bytes": 64, "align_s": 0.1, "slowest_task": 2}
    return CheckpointStatus(**{**fields, **changes})  # type: ignore[arg-type]


def test_complete_and_failed_checkpoints_are_seen_once_each(make_status: MakeStatus) -> None:
    """The first status has the newest one; a status without news adds nothing."""
    failed = complete(5, number=7, failed=1, last_error="the disk is full", failed_number=6)
    seen = after(make_status, complete(4), complete(4), complete(5), failed, failed, complete(7, failed=1))
    items = [checkpoint_item(each) for each in seen]
    assert [(each.number, each.state, each.reason) for each in items] == [
        (4, "complete", ""),
        (5, "complete", ""),
        (6, "failed", "the disk is full"),
        (7, "complete", ""),
    ]
    assert [each.at_s for each in items] == [904.0, 905.0, 1003.0, 907.0]
    assert (items[0].duration_s, items[0].size_bytes, items[0].align_s, items[0].slowest_task) == (0.5, 64, 0.1, 2)
    assert (items[2].duration_s, items[2].size_bytes) == (0.0, 0)


def test_a_failure_before_a_complete_checkpoint_is_no_trouble_any_more(
    observations: Observations, make_status: MakeStatus
) -> None:
    """Both are in one status, of which the complete one has the higher number. An earlier leader tells no number."""
    for number in (6, 0):
        failed = complete(7, failed=1, last_error="the disk is full", failed_number=number)
        seen = after(make_status, complete(5), failed)
        assert [(each.number, bool(each.error)) for each in seen] == [(5, False), (number, True), (7, False)]
        for each in (complete(5), failed):
            observations.put_status("near", make_status(checkpoints=each), None)
        assert troubles(observations.topology("near", "words")) == ()


def test_another_leader_repeats_no_checkpoint(make_status: MakeStatus) -> None:
    """It knows the number of the newest complete one, and neither its figures nor former failures."""
    former = complete(4, failed=3, last_error="away")
    assert [each.number for each in after(make_status, former, CheckpointStatus(number=4, complete=4))] == [4]


def test_a_topology_without_checkpoints_has_none(make_status: MakeStatus) -> None:
    """At least once there are none, and an hour of them is bounded."""
    assert after(make_status, None, None) == ()
    assert len(after(make_status, *map(complete, range(1, 500)))) == 200


def test_a_failure_is_trouble_until_the_next_one_is_complete(
    observations: Observations, make_status: MakeStatus
) -> None:
    """The head of each page tells it; a failure of yesterday is no trouble."""
    steps = (
        complete(5),
        complete(5, number=7, failed=1, last_error="the disk is full", failed_number=6),
        complete(7, failed=1),
    )
    texts = []
    for each in steps:
        observations.put_status("near", make_status(checkpoints=each), None)
        texts.append([(told.kind, told.text) for told in troubles(observations.topology("near", "words"))])
    assert texts == [[], [("checkpoint", "checkpoint 6 failed: the disk is full")], []]


def test_the_store_has_tasks_and_damaged_checkpoints() -> None:
    """The tasks are those of the newest one that can be read, or of the wanted one."""
    state, groups = Place("o", 0, 100, 1), {3: Place("o", 100, 20, 2), 9: Place("p", 0, 30, 3)}
    tasks = (
        TaskSnapshot(1, "lines", written_bytes=120, align_s=0.2, save_s=0.1, operator=state, ended=True),
        TaskSnapshot(2, "count", written_bytes=20, groups=groups),
    )
    made = [CheckpointManifest("words", "words-1", number, 50.0, 1.5, 16, tasks[: number - 5]) for number in (7, 6)]
    found = [
        ListedCheckpoint(CheckpointId("words-1", 8), None, "torn"),
        ListedCheckpoint(made[0].id, made[0], newest=True),
        ListedCheckpoint(made[1].id, made[1]),
        ListedCheckpoint(CheckpointId("words-1", 5), None, unread="no time"),
    ]
    stored = stored_checkpoints(found)
    answer = stored_answer(stored, "")
    assert [(each.id, each.size_bytes, each.written_bytes, each.tasks, each.damage) for each in answer.items] == [
        ("words-1/8", 0, 0, 0, "torn"),
        ("words-1/7", 150, 140, 2, ""),
        ("words-1/6", 100, 120, 1, ""),
        ("words-1/5", 0, 0, 0, ""),
    ]
    assert [each.unread for each in answer.items] == ["", "", "", "no time"]
    assert answer.shown == "words-1/7"
    assert answer.tasks == (
        SavedTaskItem("lines", 1, 100, 120, 0, 0.2, 0.1, ended=True),
        SavedTaskItem("count", 2, 50, 20, 2, 0.0, 0.0, ended=False),
    )
    older, damaged = stored_answer(stored, "words-1/6"), stored_answer(stored, "words-1/8")
    assert [each.component for each in older.tasks] == ["lines"]
    assert (damaged.shown, damaged.tasks) == ("words-1/8", ())
    removed, empty = stored_answer(stored, "words-1/1"), stored_answer(stored_checkpoints([]), "")
    assert (len(removed.items), removed.shown, removed.tasks) == (4, "", ())
    assert (empty.items, empty.shown) == ((), "")
