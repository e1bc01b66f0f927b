"""Concurrent changes of a job: commands that were repeated, or came at the same time."""

from __future__ import annotations

from collections.abc import Iterable

from heron_scheduler_kit.changes import Update
from heron_scheduler_kit.executors import Placement
from heron_scheduler_kit.supervision import BackoffLimits, Supervision


class Job:
    """Containers that run from their start until the test ends them."""

    def __init__(self, *container_ids: int) -> None:
        self.up = True
        self.supervision = Supervision(BackoffLimits(0.1, 10.0, 30.0), 4.0)
        self.add(*container_ids)

    def add(self, *container_ids: int) -> None:
        for each in container_ids:
            self.supervision.add(each, 1, 0.0)
            self.supervision.due(0.0)
            self.supervision.started(each, 0.0)

    def ends(self, container_id: int, error: str = "") -> None:
        self.supervision.exited(container_id, 1.0, error)

    def update(self, added: Iterable[int], removed: Iterable[int]) -> Update:
        def stop(container_ids: Iterable[int]) -> None:
            self.supervision.stop(container_ids, 0.0)

        def forget(container_ids: Iterable[int]) -> None:
            for each in container_ids:
                self.supervision.forget(each)

        update = Update(self.supervision, lambda _: Placement(self.up), stop, forget, 25.0)
        update.begin([*added], [*removed])
        return update

    def has(self) -> list[int]:
        return [each.container_id for each in self.supervision.containers()]


def test_two_updates_that_remove_one_container_both_succeed() -> None:
    """As with a retry after Ctrl-C: a container that the first has removed is gone for the second too."""
    job = Job(0, 1)
    first, second = job.update([], [1]), job.update([], [1])
    assert not first.over()
    assert not second.over()
    job.ends(1)
    assert first.over()
    assert second.over()
    assert (first.error, second.error, job.has()) == ("", "", [0])


def test_a_slow_update_does_not_end_a_removed_container_again() -> None:
    """It does not end a container that was added meanwhile with the same number, either."""
    job = Job(0, 1, 2)
    job.up = False
    slow = job.update([2], [1])
    assert not slow.over()
    quick = job.update([], [1])
    quick.over()
    job.ends(1)
    assert quick.over()
    job.add(1)
    job.up = True
    assert slow.over()
    assert slow.error == ""
    assert job.has() == [0, 1, 2]


def test_an_added_container_that_another_update_removes_is_reported_as_stopped() -> None:
    """It is not removed a second time."""
    job = Job(0, 1)
    job.up = False
    adding = job.update([1], [])
    removing = job.update([], [1])
    assert not removing.over()
    job.ends(1)
    assert removing.over()
    assert adding.over()
    assert "container 1 was stopped meanwhile" in adding.error
    assert job.has() == [0]
