"""What a checkpoint consists of: the state of each task, and where each part of it is stored. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from typing import Annotated, Final, TypeVar

import msgspec

from heron.errors import CheckpointError
from heron.spi.typed_values import decode_json

__all__ = [
    "CheckpointId",
    "CheckpointManifest",
    "Place",
    "TaskSnapshot",
    "decode_manifest",
    "decode_snapshot",
    "encode",
]

T = TypeVar("T")

_FORMAT: Final = 1
_CRC_BYTES = 4


_Bytes = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class CheckpointId(msgspec.Struct, frozen=True, order=True):
    """A checkpoint: the run that took it (its topology id), and its number, which grows with each checkpoint."""

    run: str
    number: int

    def __str__(self) -> str:
        return f"{self.run}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> CheckpointId:
        """The inverse of `str`.

        Raises:
            CheckpointError: when the text has another form.
        """
        run, _, number = text.rpartition("/")
        if not run or not number.isdecimal():
            msg = f"checkpoint {text!r:.80}: not an id; give RUN/NUMBER as `heron checkpoints TOPOLOGY list` prints it"
            raise CheckpointError(msg)
        return cls(run, int(number))


class Place(msgspec.Struct, frozen=True):
    """Where a payload is: an object of the store, the offset and size in bytes, and the CRC-32 of the payload."""

    object: str
    start: _Bytes
    size_bytes: _Bytes
    crc: int


class TaskSnapshot(msgspec.Struct, frozen=True):
    """The state of one task at a checkpoint.

    `ended`: the task had sent all of its output. `version` is the `state_version`. `operator` is the state of
    `init_state`, if the component has one. `groups` are the key groups with keyed state. `written_bytes`, `align_s` and
    `save_s` say what the task wrote for this checkpoint, how long it held data back, and how long saving took.
    `component_index` finds the task that replaces this one in another container; -1 in checkpoints of older versions.
    `letters` are the dead letters that the task had not written, if there are any.
    """

    task_id: int
    component: str
    ended: bool = False
    version: int = 0
    operator: Place | None = None
    groups: dict[int, Place] = msgspec.field(default_factory=dict)
    written_bytes: int = 0
    align_s: float = 0.0
    save_s: float = 0.0
    component_index: int = -1
    letters: Place | None = None

    def places(self) -> tuple[Place, ...]:
        """Every payload of the task."""
        return (*(each for each in (self.operator, self.letters) if each), *self.groups.values())


class CheckpointManifest(msgspec.Struct, frozen=True):
    """A complete checkpoint. `taken_at_s` is wall time in seconds, `duration_s` the time from the order to the end."""

    topology: str
    run: str
    number: int
    taken_at_s: float
    duration_s: float
    key_groups: int
    tasks: tuple[TaskSnapshot, ...]

    @property
    def id(self) -> CheckpointId:
        """The id of the checkpoint."""
        return CheckpointId(self.run, self.number)

    def tasks_of(self, component: str) -> tuple[TaskSnapshot, ...]:
        """The snapshots of the tasks of a component, by task id."""
        return tuple(each for each in self.tasks if each.component == component)

    def objects(self) -> frozenset[str]:
        """Every object of the store that the checkpoint needs, besides its manifest."""
        return frozenset(place.object for task in self.tasks for place in task.places())

    def size_of_groups(self, component: str, groups: Collection[int]) -> int:
        """The size of the keyed state of a component in these key groups, in bytes."""
        tasks = self.tasks_of(component)
        return sum(task.groups[group].size_bytes for task in tasks for group in groups if group in task.groups)

    def size_bytes(self) -> int:
        """The size of the state."""
        return sum(place.size_bytes for task in self.tasks for place in task.places())


class _Envelope(msgspec.Struct):
    format: int
    kind: str
    value: msgspec.Raw


_KINDS: Final[dict[type, str]] = {TaskSnapshot: "task_snapshot", CheckpointManifest: "checkpoint"}


def encode(value: TaskSnapshot | CheckpointManifest) -> bytes:
    """The value as JSON behind a CRC-32, so that a torn object is recognised."""
    document = msgspec.json.encode({"format": _FORMAT, "kind": _KINDS[type(value)], "value": value})
    return zlib.crc32(document).to_bytes(_CRC_BYTES, "little") + document


def decode_manifest(data: bytes, place: str) -> CheckpointManifest:
    """The manifest that `encode` wrote; `place` names in errors where `data` comes from.

    Raises:
        CheckpointError: when it is torn, of another kind, or of a newer format.
    """
    return _decode(data, CheckpointManifest, place)


def decode_snapshot(data: bytes, place: str) -> TaskSnapshot:
    """The snapshot that `encode` wrote; parameters and errors as for `decode_manifest`."""
    return _decode(data, TaskSnapshot, place)


def _decode(data: bytes, to: type[T], place: str) -> T:
    crc, document = int.from_bytes(data[:_CRC_BYTES], "little"), data[_CRC_BYTES:]
    if len(data) < _CRC_BYTES or zlib.crc32(document) != crc:
        msg = f"{place}: {len(data)} bytes are torn or changed, their checksum does not match; use another checkpoint"
        raise CheckpointError(msg)
    try:
        envelope = decode_json(document, _Envelope)
        if envelope.format > _FORMAT:
            msg = (
                f"{place}: has format {envelope.format}, this version of heron-core reads formats up to {_FORMAT}; "
                "upgrade heron-core"
            )
            raise CheckpointError(msg)
        if envelope.kind == _KINDS[to]:
            return decode_json(envelope.value, to)
    except msgspec.MsgspecError as error:
        msg = f"{place}: cannot be read: {error}"
        raise CheckpointError(msg) from error
    msg = f"{place}: holds a {envelope.kind}, not a {_KINDS[to]}"
    raise CheckpointError(msg)
