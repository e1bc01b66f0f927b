"""State of an older version needs a method that converts it, before a task changes."""

from __future__ import annotations

import pytest

from heron.checkpoints.manifest import CheckpointManifest, Place, TaskSnapshot
from heron.errors import UsageError
from heron_cli.launch.code.state_check import check_state, other_versions
from heron_cli.launch.loading.load_report import StateReport

PLACE = Place("object", 0, 1, 0)


def manifest(version: int, *, operator: bool = False, keyed: bool = False) -> CheckpointManifest:
    """A checkpoint with the state of one task of `count`."""
    groups = {0: PLACE} if keyed else {}
    snapshot = TaskSnapshot(2, "count", version=version, operator=PLACE if operator else None, groups=groups)
    return CheckpointManifest("wc", "wc-1", 7, 0.0, 0.0, 8, (snapshot,))


@pytest.mark.parametrize(
    ("saved", "state"),
    [
        (manifest(1, operator=True), StateReport(1, migrates=False, migrates_keyed=False)),
        (manifest(0, operator=True), StateReport(1, migrates=True, migrates_keyed=False)),
        (manifest(0, keyed=True), StateReport(1, migrates=False, migrates_keyed=True)),
        (manifest(0), StateReport(1, migrates=False, migrates_keyed=False)),
        (manifest(0, keyed=True), None),
    ],
)
def test_state_that_can_be_read(saved: CheckpointManifest, state: StateReport | None) -> None:
    check_state(saved, {"count": state} if state else {}, ["count"])


@pytest.mark.parametrize(
    ("saved", "state", "reason"),
    [
        (manifest(1, operator=True), StateReport(2, migrates=False, migrates_keyed=True), "override migrate"),
        (manifest(1, keyed=True), StateReport(2, migrates=True, migrates_keyed=False), "override migrate_keyed"),
        (manifest(1, keyed=True), None, "is no StatefulComponent, and has saved state"),
        (manifest(0, operator=True), None, "is no StatefulComponent, and has saved state"),
    ],
)
def test_state_that_cannot_be_read(saved: CheckpointManifest, state: StateReport | None, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_state(saved, {"count": state} if state else {}, ["count"])
    assert "the new code cannot read checkpoint wc-1/7: component 'count'" in str(refused.value)
    assert str(refused.value).endswith(reason)


def test_components_that_do_not_change_are_not_asked() -> None:
    check_state(manifest(1, keyed=True), {}, [])


def test_another_version_is_known() -> None:
    state = StateReport(2, migrates=True, migrates_keyed=True)
    assert other_versions(manifest(1, keyed=True), {"count": state}, ["count"]) == ("count",)
    assert other_versions(manifest(2, keyed=True), {"count": state}, ["count"]) == ()
    assert other_versions(manifest(1), {"count": state}, ["count"]) == (), "nothing is saved"
