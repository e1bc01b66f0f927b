"""How many replays a spout owes."""

from __future__ import annotations

from heron.instance.acks.owed_replays import OwedReplays


def failed(replays: OwedReplays, *ids: object) -> None:
    for each in ids:
        replays.fail(lambda _: None, each, lambda: 0)


def test_a_root_is_owed_until_its_id_is_emitted() -> None:
    """Also one of several with the same id, and an id that cannot be hashed."""
    replays = OwedReplays()
    failed(replays, 1, 1, [2], {"a": 3})
    replays.opened([1, [2], "new"])
    assert len(replays) == 2
    replays.opened([1, 1, {"a": 3}])
    assert not replays


def test_a_fail_that_emits_owes_nothing() -> None:
    """Under any id."""
    emitted = iter([0, 1])
    replays = OwedReplays()
    replays.fail(lambda _: None, 1, lambda: next(emitted))
    assert not replays


def test_replays_with_other_ids_count_by_calls() -> None:
    """Calls that emitted the id of a failed root do not."""
    replays = OwedReplays()
    failed(replays, 1, 2, 3)
    before = len(replays)
    replays.opened([1, "other"])
    replays.called(before, 1)
    assert len(replays) == 2
    replays.called(2, 1)
    assert len(replays) == 1
    replays.called(1, 4)
    assert not replays


def test_roots_beyond_the_bound_are_only_counted() -> None:
    """A spout may fail roots for years without a replay."""
    replays = OwedReplays(most_ids=2)
    failed(replays, 1, 2, 3, 4)
    replays.opened([1, 2, 3, 4])
    assert len(replays) == 2
    replays.forget()
    assert not replays
