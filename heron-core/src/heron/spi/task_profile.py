"""Where the thread of a task has spent its time, by samples: frozen values, JSON on the wire."""

from __future__ import annotations

import msgspec

from heron.errors import RemoteProtocolError
from heron.spi.task_stacks import StackFrame
from heron.spi.typed_values import decode_document

__all__ = ["ProfiledStack", "TaskProfile", "decode_profile", "encode_profile"]


class ProfiledStack(msgspec.Struct, frozen=True):
    """The time with these calls: on a processor, and off it. `frames` are indices of `TaskProfile.frames`, outermost
    first.
    """

    frames: tuple[int, ...]
    on_s: float
    off_s: float


class TaskProfile(msgspec.Struct, frozen=True):
    """A profile of the thread that runs the component. Only frames of user code have a `source`.

    `lasted_s` is the time of all samples. `other_on_s` and `other_off_s` are the part of it in rare stacks, which are
    left out when there are too many.
    """

    topology: str
    component: str
    task_id: int
    container_id: int
    incarnation: int
    pid: int
    host: str
    began_at_s: float
    lasted_s: float
    samples: int
    frames: tuple[StackFrame, ...]
    stacks: tuple[ProfiledStack, ...]
    other_on_s: float = 0.0
    other_off_s: float = 0.0


def encode_profile(profile: TaskProfile) -> bytes:
    """The profile as JSON."""
    return msgspec.json.encode(profile)


def decode_profile(data: bytes) -> TaskProfile:
    """The inverse of `encode_profile`.

    Raises:
        RemoteProtocolError: when the bytes do not decode, or a stack has a frame that is not there.
    """
    profile = decode_document(data, TaskProfile, "a profile")
    known = range(len(profile.frames))
    if any(index not in known for stack in profile.stacks for index in stack.frames):
        msg = f"a profile of {len(data)} bytes has a stack with a frame that is not in its list of {len(known)}"
        raise RemoteProtocolError(msg)
    return profile
