"""Frames of the child protocol, as the golden file pins them; `GoldenFrames.java` compares the Java side with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from heron.instance.codec.plain import PLAIN
from heron_runtime_jvm.frames import Frame, FrameDecoder, FrameKind, encoded, links_of
from heron_runtime_jvm.java_values import JavaLong, sendable
from heron_runtime_multilang.child_error import ChildProtocolError

LIMIT = 10_000
GOLDEN = Path(__file__).parent / "golden" / "child_frames.txt"
ROWS: tuple[tuple[object, ...], ...] = (
    ("word", 1, 2**40, 1.5, None, True, b"\0\xff", [1, "a"], {"k": -1}),
    ("Zürich 𝄞", -129, -(2**31) - 1, -0.0, None, False, b"", [], {}),
)
COLUMNS: list[Sequence[object]] = [
    ("word", "Zürich 𝄞", None),
    ("a\0b", "", "c"),
    (1, 2**40, None),
    (1.5, -0.0, 0.25),
    (None, True, False),
    (b"\0\xff", b"", b"ab"),
    (None, None, None),
]
TO_CHILD: dict[str, tuple[FrameKind, list[object]]] = {
    "setup": (FrameKind.SETUP, [{"topology": "words", "component": "count", "task": 7}]),
    "tuples": (FrameKind.TUPLES, [42, "split", "default", 3, ROWS]),
    "java-values": (FrameKind.TUPLES, [1, "typed", "default", 3, [sendable((JavaLong(5),))]]),
    "tick": (FrameKind.TUPLES, [0, "__system", "__tick", -1, [[5]]]),
    "next": (FrameKind.NEXT, [512]),
    "acked": (FrameKind.ACKED, [[2**40 + 1, 2]]),
    "failed": (FrameKind.FAILED, [[2**40 + 3, 1]]),
    "activate": (FrameKind.ACTIVATE, []),
    "deactivate": (FrameKind.DEACTIVATE, []),
    "ping": (FrameKind.PING, []),
    "task-ids": (FrameKind.TASK_IDS, [[3, 4]]),
    "plain-tuples": (FrameKind.PLAIN_TUPLES, [42, "split", "default", 3, PLAIN.encode(COLUMNS)]),
    "plan": (FrameKind.PLAN, [[("split", [2, 3]), ("count", [4])]]),
}
OF_CHILD: dict[str, list[Frame]] = {
    "ready": [[16, 1234, "17.0.1"]],
    "emit": [[17, "default", 0, [["a", []], ["Zürich 𝄞", None]], None]],
    "emit-anchored": [
        [17, "default", 0, [[[True, 1.5], {"k": b"\0\1"}], ["a", -(2**31) - 1], ["b", 128]], [[42, 43], 42, None]]
    ],
    "emit-direct": [[17, "default", 7, [["a", 1]], None]],
    "emit-exact": [[17, "other", 0, [[JavaLong(5)]], None]],
    "ask": [[18, "default", ["a", 1], 42]],
    "ack-fail-done": [[19, [42, 2, 45, 1]], [20, [44, 1]], [21, 45]],
    "turn-over": [[22]],
    "pong": [[23]],
    "error": [[24, "java.lang.Error", "no", "java.lang.Error: no\n"]],
    "metrics": [[25, {"seen": 3}, {"load": 0.5}]],
    "end": [[26]],
    "emit-plain": [[27, "default", 2, None, PLAIN.encode([("a", "Zürich 𝄞"), (1, None)])]],
    "emit-plain-anchored": [
        [27, "default", 2, 42, PLAIN.encode([("a", "b"), (2**31, -1)])],
        [27, "default", 3, [42, None, 44], PLAIN.encode([(None, "", "c"), (1.5, -0.0, 0.25)])],
        [17, "default", 0, [["\0", True]], 43],
    ],
    "emit-plain-ask": [[27, "default", 1, None, PLAIN.encode([("a",), (1,)])], [18, "default", [None, 2], 42]],
}


def golden() -> dict[str, bytes]:
    """The frames of the golden file, by name."""
    lines = GOLDEN.read_text(encoding="ascii").splitlines()
    return {name: bytes.fromhex(frame) for name, frame in (line.split(": ") for line in lines)}


def test_the_golden_file_has_a_frame_of_each_kind() -> None:
    """What others write a runner by."""
    assert list(golden()) == [*TO_CHILD, *OF_CHILD]
    kinds = {int(kind) for kind, _ in TO_CHILD.values()} | {frame[0] for each in OF_CHILD.values() for frame in each}
    assert kinds == set(FrameKind)


@pytest.mark.parametrize("name", TO_CHILD)
def test_frames_to_a_child_are_pinned(name: str) -> None:
    """Byte by byte."""
    kind, parts = TO_CHILD[name]
    assert encoded(kind, *parts) == golden()[name]


@pytest.mark.parametrize("name", OF_CHILD)
def test_frames_of_a_child_are_read(name: str) -> None:
    """Also if they arrive byte by byte."""
    data, decoder = golden()[name], FrameDecoder(LIMIT)
    assert FrameDecoder(LIMIT).feed(data) == OF_CHILD[name]
    assert [frame for byte in data for frame in decoder.feed(bytes([byte]))] == OF_CHILD[name]
    assert decoder.unfinished_bytes == 0


def test_links_are_one_for_each_row() -> None:
    """A frame with others cannot be carried out."""
    assert links_of(None, 2) is None
    assert links_of(7, 2) == range(7, 9)
    assert links_of([7, None], 2) == [7, None]
    with pytest.raises(ValueError, match=r"3 rows have other links: \[7\]"):
        links_of([7], 3)


def test_a_small_long_is_told_from_an_integer() -> None:
    """Only its class says so: it equals the int."""
    [[*_, rows, _]] = FrameDecoder(LIMIT).feed(golden()["emit-exact"])
    assert type(rows) is list
    assert type(rows[0][0]) is JavaLong


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1", "a frame has 1213486160 bytes, the limit is 10000 bytes"),
        (b"\0\0\0\x01\xc1", "a frame of 1 bytes cannot be read"),
        (b"\0\0\0\x02\x91\xa1", "a frame of 2 bytes cannot be read"),
        (b"\0\0\0\x01\x07", "no array that begins with a kind"),
        (b"\0\0\0\x01\x90", "no array that begins with a kind"),
        (b"\0\0\0\x00", "a frame of 0 bytes cannot be read"),
        (b"\0\0\0\x04\x91\xd4\x07\x00", "extension type 7 is unknown"),
    ],
)
def test_what_is_no_frame_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    """Nothing behind it can be trusted."""
    with pytest.raises(ChildProtocolError, match=reason):
        FrameDecoder(LIMIT).feed(data)


def test_half_a_frame_is_counted() -> None:
    """The error of a child that dies says how much of it has arrived."""
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(golden()["error"][:-1]) == []
    assert decoder.unfinished_bytes == len(golden()["error"]) - 1
    assert decoder.end() == []


def test_a_list_of_another_encoder_is_read_too() -> None:
    """WIRE.md allows each form of MessagePack."""
    body = msgspec.msgpack.encode([19, list(range(20))])
    assert FrameDecoder(LIMIT).feed(len(body).to_bytes(4, "big") + body) == [[19, list(range(20))]]
