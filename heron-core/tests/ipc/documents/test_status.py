"""A reader of many statuses decodes as the decoder does. It keeps the lists that have not changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.documents.status import StatusReader, TaskStatus, TopologyStatus, decode_status, encode_status
from parts.pinned_statuses import STATUS_WITH_REPORTED_TASKS as FULL

STATUS = TopologyStatus("words", "words-1", "running", 1.0)


@pytest.mark.parametrize("status", [STATUS, FULL])
def test_a_reader_reads_what_the_decoder_reads(status: TopologyStatus) -> None:
    """With every field, and with none but the necessary ones."""
    data, reader = encode_status(status), StatusReader()
    assert reader.read(data) == decode_status(data) == status
    assert reader.read(data) == status
    short = b'{"topology": "words", "topology_id": "words-1", "state": "running", "started_at_s": 1}'
    assert reader.read(short) == STATUS


def test_a_reader_keeps_the_lists_that_have_not_changed() -> None:
    """And only those: a task that fails, and a process that is started again, are seen in the same status."""
    reader = StatusReader()
    first = reader.read(encode_status(FULL))
    second = reader.read(encode_status(replace(FULL, plan_version=8)))
    assert (second.tasks is first.tasks, second.processes is first.processes) == (True, True)
    assert second.plan_version == 8
    failed = (TaskStatus(3, "count", 1, "failed", 1, 1, "ValueError"),)
    third = reader.read(encode_status(replace(FULL, tasks=failed)))
    assert (third.tasks, third.processes is first.processes) == (failed, True)
    assert reader.read(encode_status(FULL)) == FULL


@pytest.mark.parametrize("part", ["tasks", "processes"])
@pytest.mark.parametrize("value", [5, "x", [{"task_id": "x"}], {}])
def test_a_status_that_cannot_be_read_hides_no_later_one(part: str, value: object) -> None:
    """The reader refuses it like the decoder."""
    reader = StatusReader()
    broken = json.dumps({**json.loads(encode_status(FULL)), part: value}).encode()
    for read in (reader.read, decode_status):
        with pytest.raises(RemoteProtocolError, match=f"a topology status of {len(broken)} bytes cannot be read"):
            read(broken)
    assert reader.read(encode_status(FULL)) == FULL


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"topology": 5}', b"\xff"])
def test_bytes_that_are_no_status_are_refused(document: bytes) -> None:
    """An answer of another program, or half of one."""
    for read in (StatusReader().read, decode_status):
        with pytest.raises(RemoteProtocolError):
            read(document)
