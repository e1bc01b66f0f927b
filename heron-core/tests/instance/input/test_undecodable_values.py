"""Values that do not decode: only their rows fail, whatever encodes them, and every reader of batches goes on."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns, decode_values
from heron.instance.codec.plain import PlainSerializer
from heron.instance.codec.serializers import PICKLE, Serializers
from heron.instance.input.batch_reader import BatchReader, ReceivedBatch
from heron.instance.input.undecodable_rows import report_undecodable
from heron.instance.user.user_errors import UserErrors
from heron.ipc.frames.frame import Encoding, parse_segment
from heron.planner.physical_plan import PlanIndex
from heron.spi.serializer import Serializer, UndecodableValue
from heron_testing.builders import physical_plan, spout, stream, topology
from parts import tuple_segment

PLAIN = PlainSerializer.open({})
INDEX = PlanIndex(physical_plan(topology(spout("spout", stream("number", "value"))), {"spout": (1,)}))


class TwoArgumentsError(Exception):
    """Pickles with one argument of two."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


class Stubborn:
    """Refuses its state."""

    def __init__(self) -> None:
        self.left = 1

    def __setstate__(self, state: object) -> None:
        raise LookupError


class Swallowing:
    """Would make a good value of anything, also of what replaces a bad one."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> tuple[object, ...]:
        return Swallowing, (self.value,)


class Absent:
    """Is renamed in the payload to a class that the receiver lacks."""


class Good(list[object]):
    """An object with items and a state."""

    def __init__(self, items: Sequence[object] = ()) -> None:
        super().__init__(items)
        self.note = {"a": (1,)}


HERE = __name__
BAD: dict[str, tuple[object, str]] = {
    "constructor": (TwoArgumentsError(7, "seven"), f"{HERE}.TwoArgumentsError"),
    "state": (Stubborn(), f"{HERE}.Stubborn"),
    "class": (Absent(), f"{HERE}.Lost__"),
    "inside": ({"a": [Good(), Stubborn()]}, f"{HERE}.Stubborn"),
    "argument": (Swallowing(Stubborn()), f"{HERE}.Stubborn"),
}


def encoded(columns: list[Sequence[object]]) -> bytes:
    return PICKLE.encode(columns).replace(b"\x8c\x06Absent", b"\x8c\x06Lost__")


def values_of(payload: bytes, rows: int, serializer: Serializer = PICKLE) -> list[Sequence[object]]:
    with pytest.raises(SerializationError):
        decode_columns(payload, rows, serializer)
    return decode_values(payload, rows, serializer)


def batch_of(payload: bytes, rows: int, encoding: Encoding = Encoding.PICKLE) -> ReceivedBatch:
    head = parse_segment(tuple_segment([(0, 0)] * rows, (2,), encoding=encoding), 0)
    return BatchReader(INDEX, Serializers()).read(payload, replace(head, payload_start=0, end=len(payload)))


@pytest.mark.parametrize("kind", list(BAD))
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 600])
@pytest.mark.parametrize("form", [list, tuple])
def test_only_the_bad_value_does_not_decode(kind: str, rows: int, form: type[list[object]]) -> None:
    """At each end and in the middle of a column; it has the type and the error, and its neighbours are as sent."""
    bad, name = BAD[kind]
    for place in {0, rows // 2, rows - 1}:
        column: list[object] = [{"n": number, "s": (1, {2})} for number in range(rows)]
        sent = [*column[:place], bad, *column[place + 1 :]]
        numbers, found = values_of(encoded([form(range(rows)), form(sent)]), rows)
        assert list(numbers) == list(range(rows))
        value = found[place]
        assert isinstance(value, UndecodableValue)
        assert value.kind == name
        assert [*found[:place], None, *found[place + 1 :]] == [*column[:place], None, *column[place + 1 :]]


def test_frames_may_end_within_a_value() -> None:
    """The pickler begins a frame every 64 KiB, and writes large values between frames."""
    column: list[object] = [[number, "x" * 700, b"y" * 70_000 if number % 100 == 0 else None] for number in range(400)]
    (found,) = values_of(encoded([[*column, Stubborn()]]), 401)
    assert found[:400] == column
    assert isinstance(found[400], UndecodableValue)


def test_values_that_contain_themselves_are_independent_of_their_neighbours() -> None:
    """A memo of the whole batch would make each value depend on those before it."""
    cyclic: list[object] = [Good()]
    cyclic.append(cyclic)
    bad: list[object] = [Stubborn()]
    bad.append(bad)
    shared = [1]
    (found,) = values_of(encoded([[Stubborn(), cyclic, bad, shared, shared, cyclic]]), 6)
    for place in (1, 5):
        arrived = found[place]
        assert isinstance(arrived, list)
        assert arrived[0] == Good()
        assert arrived[1] is arrived
    assert found[3] == found[4] == [1]
    assert found[3] is not found[4]
    assert [value.kind for value in found if isinstance(value, UndecodableValue)] == [f"{HERE}.Stubborn"] * 2


@settings(max_examples=80)
@given(st.data())
def test_each_value_alone_is_as_in_its_batch(data: st.DataObject) -> None:
    """Whatever opcodes a value needs."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.binary(),
        st.complex_numbers(allow_nan=False),
    )
    values = st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=5),
            st.tuples(inner, inner, inner, inner),
            st.tuples(inner),
            st.dictionaries(st.text(), inner, max_size=4),
            st.builds(Good, st.lists(inner, max_size=3)),
            st.frozensets(st.integers(), max_size=4),
            st.sets(st.text(), max_size=4),
        ),
        max_leaves=12,
    )
    column = data.draw(st.lists(values, min_size=1, max_size=8))
    assert list(map(list, PICKLE.decode_each(encoded([column, column])))) == [column, column]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"garbage",
        pickle.dumps(5),
        pickle.dumps(Good([1])),
        pickle.dumps([[Stubborn(), Stubborn()]]),  # with a memo: the second value refers to the first
        b"cno_such_module\nThing\n.",
        b"]0.",
        b"a.",
    ],
)
def test_a_batch_whose_values_cannot_be_told_apart_is_a_typed_error(payload: bytes) -> None:
    """Its tuples fail together; no value may be made of bytes of another one."""
    with pytest.raises(SerializationError):
        decode_values(payload, 2, PICKLE)


def test_no_part_of_a_payload_makes_a_batch() -> None:
    """A truncated batch is lost whole."""
    payload = PICKLE.encode([[1, "two"], [Stubborn(), {"a": (1, 2)}]])
    for size in range(len(payload)):
        with pytest.raises(SerializationError):
            decode_values(payload[:size], 2, PICKLE)


@pytest.mark.parametrize("sized", [False, True])
def test_text_of_another_program_that_is_not_utf_8_fails_alone(sized: bool) -> None:
    """The serializer plain: its texts are side by side, with lengths if one has the character U+0000."""
    texts: list[object] = ["a", None, "BAD!", "a\0b" if sized else "c", ""]
    payload = PLAIN.encode([list(range(5)), texts, [b"x"] * 5]).replace(b"BAD!", b"\xff\xfe!!")
    numbers, found, others = values_of(payload, 5, PLAIN)
    assert list(numbers) == [0, 1, 2, 3, 4]
    assert list(others) == [b"x"] * 5
    bad = found[2]
    assert isinstance(bad, UndecodableValue)
    assert bad.kind == "text"
    assert [*found[:2], *found[3:]] == [*texts[:2], *texts[3:]]


def test_a_payload_of_plain_that_is_cut_is_lost_whole() -> None:
    """Nothing says then where a value ends."""
    payload = PLAIN.encode([[1, 2], ["a", "b"]])
    for size in range(len(payload)):
        with pytest.raises(SerializationError):
            decode_values(payload[:size], 2, PLAIN)


def test_a_batch_has_its_lost_rows() -> None:
    """Its readers skip them: places count all rows that were received."""
    batch = batch_of(encoded([[0, 1, 2, 3], [Stubborn(), "b", TwoArgumentsError(1, "x"), "d"]]), 4)
    assert [each.place for each in batch.undecodable] == [0, 2]
    assert list(batch.decoded(batch.values())) == [(1, "b"), (3, "d")]
    assert list(batch.decoded("cd", 2)) == ["d"]
    assert batch.undecodable_among(0, 4) == 2
    assert batch.undecodable_among(1, 2) == 1
    assert "<undecodable" in repr(batch.first_rows(1))


def test_a_batch_that_decodes_the_second_time_has_no_lost_row() -> None:
    """The code of an author may fail once."""
    failures = ["once"]
    Moody.failures = failures
    batch = batch_of(encoded([[1], [Moody()]]), 1)
    assert not failures
    assert batch.undecodable == ()
    assert isinstance(batch.columns()[1][0], Moody)


class Moody:
    """Refuses its state as often as there are failures left."""

    failures: list[str]

    def __init__(self) -> None:
        self.left = 1

    def __setstate__(self, state: object) -> None:
        if self.failures:
            raise LookupError(self.failures.pop())


def test_the_error_names_the_place_the_type_and_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """Like any failure of user code, it is shown once and counted each time."""
    errors = UserErrors("words", "count", 5)
    rows = 100
    batch = batch_of(encoded([list(range(rows)), [TwoArgumentsError(7, "seven")] * rows]), rows)
    report_undecodable(batch.undecodable, errors)
    assert errors.count == rows
    assert len(errors.take_events()) == 1
    line, again = [line for line in capsys.readouterr().err.splitlines() if line.startswith("heron: ")]
    assert "was raised again; this output has the first alone" in again
    for part in (
        "topology 'words', component 'count', task 5: ",
        f"decoding field 'value' ({HERE}.TwoArgumentsError) of stream 'default' of 'spout' with (hidden) ",
        f"raised SerializationError: a value of type {HERE}.TwoArgumentsError cannot be decoded (PickleSerializer): "
        "TypeError: TwoArgumentsError.__init__() missing 1 required positional argument: 'text'; ",
        "pass all arguments to super().__init__",
        "; the tuple is failed and the task continues",
    ):
        assert part in line


def test_the_place_is_the_authors_line_if_it_raised(capsys: pytest.CaptureFixture[str]) -> None:
    """And else the receiver's class: a line of the engine would not help."""
    errors = UserErrors("words", "count", 5)
    errors.locate(Swallowing)
    report_undecodable(batch_of(encoded([[0], [Stubborn()]]), 1).undecodable, errors)
    line = Stubborn.__setstate__.__code__.co_firstlineno + 1
    assert f"at {__file__}, line {line}; " in errors.last
    report_undecodable(batch_of(encoded([[0], [TwoArgumentsError(1, "x")]]), 1).undecodable, errors)
    assert "or after (Swallowing); " in errors.last
    capsys.readouterr()
