"""What the leader knows of keys that rotate: by heartbeats, and by stream managers that listen at other ports."""

from __future__ import annotations

from heron.ipc.documents.status import KeysStatus
from heron.tmanager.leader.key_reports import KeyReports


def test_containers_with_the_same_keys_are_one_group() -> None:
    """A thousand containers must not make the status longer than their numbers."""
    reports = KeyReports()
    for container_id in (1, 2, 3):
        reports.take(container_id, ("old",), moved=True)
    reports.take(2, ("old", "new"), moved=False)
    assert reports.statuses({1, 2, 3, 4}) == (
        KeysStatus(("old",), True, (1, 3)),
        KeysStatus(("old", "new"), False, (2,)),
    )
    reports.forget(1)
    assert reports.statuses({1, 2}) == (KeysStatus(("old", "new"), False, (2,)),)
