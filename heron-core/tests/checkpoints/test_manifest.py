"""Manifests and snapshots as documents: round trips, and the refusal of anything else."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.checkpoints.manifest import (
    CheckpointId,
    CheckpointManifest,
    Place,
    TaskSnapshot,
    decode_manifest,
    decode_snapshot,
    encode,
)
from heron.errors import CheckpointError

_PLACES = st.builds(
    Place,
    st.sampled_from(["words/words-1/0000000001/task-3", "words/words-1/0000000002/task-3"]),
    st.integers(0, 2**50),
    st.integers(0, 2**40),
    st.integers(0, 2**32 - 1),
)
_SECONDS = st.floats(0.0, 2e9)
SNAPSHOTS = st.builds(
    TaskSnapshot,
    task_id=st.integers(1, 100_000),
    component=st.text(max_size=20),
    ended=st.booleans(),
    version=st.integers(0, 2**31),
    operator=st.none() | _PLACES,
    groups=st.dictionaries(st.integers(0, 1023), _PLACES, max_size=5),
    written_bytes=st.integers(0, 2**50),
    align_s=_SECONDS,
    save_s=_SECONDS,
)
MANIFESTS = st.builds(
    CheckpointManifest,
    topology=st.text(max_size=20),
    run=st.text(max_size=20),
    number=st.integers(1, 10**10 - 1),
    taken_at_s=_SECONDS,
    duration_s=_SECONDS,
    key_groups=st.integers(1, 1024),
    tasks=st.lists(SNAPSHOTS, max_size=4).map(tuple),
)

SNAPSHOT = TaskSnapshot(3, "count", operator=Place("o", 0, 4, 7), groups={5: Place("o", 4, 6, 8)})
MANIFEST = CheckpointManifest("words", "words-1", 2, 1e9, 0.25, 256, (SNAPSHOT, TaskSnapshot(1, "line", ended=True)))


def with_crc(document: bytes) -> bytes:
    """Return the document as `encode` frames it."""
    return zlib.crc32(document).to_bytes(4, "little") + document


@given(manifest=MANIFESTS)
def test_a_manifest_returns_from_its_bytes(manifest: CheckpointManifest) -> None:
    """Also names in any script, and sizes beyond 32 bits."""
    assert decode_manifest(encode(manifest), "here") == manifest


@given(snapshot=SNAPSHOTS)
def test_a_snapshot_returns_from_its_bytes(snapshot: TaskSnapshot) -> None:
    """A task reports it to the topology manager in this form."""
    assert decode_snapshot(encode(snapshot), "here") == snapshot


def test_a_manifest_that_was_cut_is_refused() -> None:
    """At any place, with the name of the object and its size."""
    data = encode(MANIFEST)
    for end in range(len(data)):
        with pytest.raises(CheckpointError, match=f"words/manifest: {end} bytes are torn or changed"):
            decode_manifest(data[:end], "words/manifest")


@given(at=st.integers(0, len(encode(MANIFEST)) - 1), change=st.integers(1, 255))
def test_a_manifest_with_a_changed_byte_is_refused(at: int, change: int) -> None:
    """A bad disk must not lead a task to the state of another."""
    data = bytearray(encode(MANIFEST))
    data[at] ^= change
    with pytest.raises(CheckpointError, match="torn or changed"):
        decode_manifest(bytes(data), "here")


@given(data=st.binary(max_size=60))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    """Also bytes whose checksum is right."""
    for each in (data, with_crc(data)):
        with pytest.raises(CheckpointError):
            decode_manifest(each, "here")


def test_a_newer_format_is_refused_with_both_numbers() -> None:
    """Its value may have any form; only the envelope is read."""
    document = msgspec.json.encode({"format": 2, "kind": "checkpoint", "value": ["another", "form"], "more": 1})
    with pytest.raises(CheckpointError, match=r"here: has format 2, .* reads formats up to 1; upgrade heron-core"):
        decode_manifest(with_crc(document), "here")


@pytest.mark.parametrize(
    "value",
    [
        {"format": 1, "kind": "checkpoint", "value": {}},
        {"format": 1, "kind": "checkpoint", "value": None},
        {"format": 1, "kind": "checkpoint"},
        {"format": "1", "kind": "checkpoint", "value": {}},
        [],
    ],
)
def test_another_document_is_refused(value: object) -> None:
    """A right checksum does not make a manifest."""
    with pytest.raises(CheckpointError, match="here: cannot be read"):
        decode_manifest(with_crc(msgspec.json.encode(value)), "here")


def test_a_snapshot_is_not_a_manifest() -> None:
    """Nor the other way round."""
    with pytest.raises(CheckpointError, match="here: holds a task_snapshot, not a checkpoint"):
        decode_manifest(encode(SNAPSHOT), "here")
    with pytest.raises(CheckpointError, match="here: holds a checkpoint, not a task_snapshot"):
        decode_snapshot(encode(MANIFEST), "here")


def test_a_manifest_knows_its_objects_and_sizes() -> None:
    """Operator state and key groups count."""
    assert MANIFEST.objects() == {"o"}
    assert MANIFEST.size_bytes() == 10
    assert [each.task_id for each in MANIFEST.tasks_of("count")] == [3]
    assert MANIFEST.tasks_of("other") == ()


@given(run=st.text(min_size=1, max_size=20), number=st.integers(0, 10**12))
def test_an_id_returns_from_its_text(run: str, number: int) -> None:
    """People copy it from one command to another."""
    found = CheckpointId(run, number)
    assert CheckpointId.parse(str(found)) == found


@pytest.mark.parametrize("text", ["", "3", "/3", "words-1/", "words-1/x", "words-1/-3", "words-1/3 ", "words-1/3.0"])
def test_another_text_is_no_id(text: str) -> None:
    """The message has the form, and the command that prints ids."""
    with pytest.raises(CheckpointError, match=r"not an id; give RUN/NUMBER as `heron checkpoints TOPOLOGY list`"):
        CheckpointId.parse(text)


def test_ids_are_ordered_by_run_and_number() -> None:
    """By number, not by the text of the number."""
    assert max(CheckpointId("a", 10), CheckpointId("a", 9)).number == 10
