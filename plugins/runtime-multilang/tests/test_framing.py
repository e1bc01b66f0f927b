"""Messages as bytes: what arrives in parts, with text in front, garbled or too large."""

from __future__ import annotations

import json

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_runtime_multilang.child_error import ChildProtocolError
from heron_runtime_multilang.child_message import ChildMessage
from heron_runtime_multilang.framing import ChildOutput, JsonFraming, MsgpackFraming

LIMIT = 4096
SCALARS = st.sampled_from([None, True, -(2**63), 2**64 - 1, 0, -1.5, "", "end", "\nend\n", "ünï\u2028", "{"])
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from(["a", "\nend\n"]), SCALARS)


def document(message: object) -> bytes:
    """A message as Storm's libraries write it."""
    return json.dumps(message).encode() + b"\nend\n"


def fed(framing: JsonFraming | MsgpackFraming, data: bytes, size: int) -> list[ChildOutput]:
    """What comes of bytes that arrive in parts."""
    return [each for start in range(0, len(data), size) for each in framing.feed(data[start : start + size])]


@settings(max_examples=20)
@given(st.lists(st.lists(VALUES, max_size=3), max_size=5), st.integers(1, 40))
def test_json_messages_arrive_however_they_are_cut(rows: list[list[object]], size: int) -> None:
    """A pipe cuts anywhere, also in the line that ends a message."""
    framing = JsonFraming(2**30)
    data = b"".join(document({"command": "emit", "tuple": row}) for row in rows)
    assert [each.values for each in fed(framing, data, size) if isinstance(each, ChildMessage)] == rows
    assert framing.unfinished_bytes == 0


@settings(max_examples=20)
@given(st.lists(st.lists(VALUES, max_size=3), max_size=5), st.integers(1, 40))
def test_msgpack_messages_arrive_however_they_are_cut(rows: list[list[object]], size: int) -> None:
    """MessagePack has no line that ends a message."""
    framing = MsgpackFraming(2**30)
    data = b"".join(msgpack.packb({"command": "emit", "tuple": row}) for row in rows)
    assert [each.values for each in fed(framing, data, size) if isinstance(each, ChildMessage)] == rows
    assert framing.unfinished_bytes == 0


@settings(max_examples=20)
@given(st.lists(VALUES, max_size=4))
def test_a_written_tuple_has_the_fields_of_the_protocol(row: list[object]) -> None:
    """Children of both framings read the same."""
    expected = {"id": "7", "comp": "wörds", "stream": "default", "task": 3, "tuple": row}
    text = JsonFraming(LIMIT).row_writer("wörds", "default", 3)(7, tuple(row))
    assert json.loads(text.removesuffix(b"\nend\n")) == expected
    packed = MsgpackFraming(LIMIT).row_writer("wörds", "default", 3)(7, tuple(row))
    assert msgpack.unpackb(packed) == expected


def test_task_ids_are_a_bare_array() -> None:
    """`storm.py` waits for exactly this after an emit."""
    assert JsonFraming(LIMIT).encode([3, 7]) == b"[3,7]\nend\n"


@pytest.mark.parametrize("text", ["plain\n", "{'a': 1}\n", "no line", '{"a": {', '["x"]\n{"command"\n', "ünï {}\n"])
def test_printed_text_in_front_of_a_message_is_told_apart(text: str) -> None:
    """pystorm lets `print` through to the channel; no message must be lost by it."""
    framing = JsonFraming(LIMIT)
    outputs = framing.feed(text.encode() + document({"command": "ack", "id": "1"}))
    assert outputs[0] == text
    assert isinstance(outputs[1], ChildMessage)
    assert (outputs[1].command, outputs[1].id) == ("ack", "1")


def test_printed_text_between_msgpack_messages_is_told_apart() -> None:
    """A printed character is an integer in MessagePack."""
    outputs = MsgpackFraming(LIMIT).feed(b"hi {}\n" + msgpack.packb({"command": "sync"}))
    assert outputs[0] == "hi {}\n"
    assert isinstance(outputs[1], ChildMessage)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"command":"emit","tuple":[1\nend\n', "cannot be read"),
        (b'{"command":"emit","tuple":[NaN]}\nend\n', "NaN and infinite numbers are not JSON"),
        (b'{"command":"emit","tuple":{}}\nend\n', "tuple"),
        (b"[1]\nend\n", "cannot be read"),
        (b"\xff\xfe\nend\n", "cannot be read"),
        (b"\nend\n", "cannot be read"),
        (b"{" * 5000 + b"\nend\n", "cannot be read"),
        (b"x" * (LIMIT + 1), rf"{LIMIT + 1} bytes so far, the limit is {LIMIT} bytes \(message_bytes\)"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    """Nothing behind it can be trusted."""
    with pytest.raises(ChildProtocolError, match=reason):
        JsonFraming(LIMIT).feed(data)


@pytest.mark.parametrize(
    ("rest", "text", "unfinished"),
    [(b"bye\n", "bye", 0), (b"\n", "", 0), (b'bye\n{"command":"em', "bye", 14), (b"{'a': 1}", "{'a': 1}", 0)],
)
def test_text_behind_the_last_message_is_told_from_half_a_message(rest: bytes, text: str, unfinished: int) -> None:
    """A script may print when it ends."""
    framing = JsonFraming(LIMIT)
    assert len(framing.feed(document({"command": "sync"}) + rest)) == 1
    assert (framing.end(), framing.unfinished_bytes) == ([text] if text else [], unfinished)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xc1", "cannot be read"),
        ("é".encode(), "cannot be read"),
        (msgpack.packb({"command": 5}), "cannot be read"),
        (b"\xdb\x00\x01\x00\x00" + b"x" * 5000, "the limit is 4096 bytes"),
    ],
)
def test_what_is_no_msgpack_message_is_refused(data: bytes, reason: str) -> None:
    """An error of the decoder becomes one of the child."""
    with pytest.raises(ChildProtocolError, match=reason):
        MsgpackFraming(LIMIT).feed(data)


@settings(max_examples=20)
@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_give_outputs_or_a_protocol_error(data: bytes, size: int) -> None:
    """A child may write anything; nothing else may be raised."""
    for framing in (JsonFraming(LIMIT), MsgpackFraming(LIMIT)):
        try:
            fed(framing, data + b"\nend\n", size)
        except ChildProtocolError:
            continue


def test_a_reply_is_wanted_unless_the_child_says_no_or_names_a_task() -> None:
    """`storm.py` waits for a reply, pystorm says no, a direct emit has none; 0 is no task."""
    framing = JsonFraming(LIMIT)
    cases: list[dict[str, object]] = [{}, {"need_task_ids": False}, {"need_task_ids": None}, {"task": 3}, {"task": 0}]
    read = [framing.feed(document({"command": "emit", **case}))[0] for case in cases]
    wanted = [each.wants_task_ids for each in read if isinstance(each, ChildMessage)]
    assert wanted == [True, False, True, False, True]
