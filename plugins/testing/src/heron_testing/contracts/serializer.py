"""The contract suite of serializers: each value arrives unchanged, or the serializer refuses it.

The test of a driver::

    class TestMySerializer(SerializerContract):
        name = "mine"
        driver_class = MySerializer
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import enum
import math
import subprocess
import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron.author_text import traceback_text
from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns
from heron.spi.serializer import PRIVATE_ENCODINGS, Encoding, Serializer
from heron_testing.contracts.driver import DriverContract, requires
from heron_testing.contracts.parts.second_process import second_process

__all__ = ["Point", "SerializerContract", "same"]

_SECRET = "-".join(("hunter2", "of", "ada"))  # in no line of this file, which tracebacks show
_LARGE_BYTES = 5 * 1024 * 1024
_PROPERTY = settings(
    max_examples=100,
    deadline=None,  # the machine may be busy
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


@dataclass(frozen=True)
class Point:
    """A class of a topology author. A serializer with the flag ``objects`` carries it; another one refuses it."""

    x: int
    y: int


class Colour(enum.IntEnum):
    """Compares equal to an int, but has another type."""

    RED = 1


_PLAIN: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2**31, -(2**63), 2**63 - 1, 2**64 - 1, 0.0, -0.0, 1.5, 1e308, math.inf, math.nan,
    "", "word", "ä→𝄞", "a\0b", "x" * 70_000, b"", b"\0\xff", [], [1, "two", [3.0]], {}, {"a": {"b": [None]}},
)  # fmt: skip
"""What every serializer carries."""

_RICH: tuple[object, ...] = (
    (), (1, "two"), {1, 2}, frozenset({"a"}), {1: "a", None: "b"}, {(1, 2): "pair"}, 2**64, -(2**63) - 1, 10**2000,
    decimal.Decimal("1.10"), decimal.Decimal("NaN"), datetime.date(2024, 2, 29),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001  # without a zone on purpose
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.UTC),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone(datetime.timedelta(hours=-9, minutes=-30))),
    datetime.time(1, 2), datetime.timedelta(days=1), uuid.UUID(int=7), bytearray(b"ab"), memoryview(b"ab"), 1 + 2j,
    range(3), OrderedDict(a=1), Colour.RED, "\ud800", Point(1, 2), Point, print,
)  # fmt: skip
"""What it may refuse, and must not change."""

_scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=10
)


def same(sent: object, arrived: object) -> bool:
    """Return whether a value arrived unchanged: equal, with equal types at every level.

    A bytearray or memoryview may arrive as bytes. NaN is equal to NaN here, and 0.0 differs from -0.0.
    """
    if isinstance(sent, bytearray | memoryview) and isinstance(arrived, bytes):
        return bytes(sent) == arrived
    if type(sent) is not type(arrived):
        return False
    if isinstance(sent, list | tuple) and isinstance(arrived, list | tuple):
        return len(sent) == len(arrived) and all(map(same, sent, arrived))
    if isinstance(sent, dict) and isinstance(arrived, dict):
        pairs = zip(sent.items(), arrived.items(), strict=False)
        return len(sent) == len(arrived) and all(same(list(one), list(other)) for one, other in pairs)
    if isinstance(sent, float) and isinstance(arrived, float):
        return sent.hex() == arrived.hex()  # -0.0 and NaN
    return str(sent) == str(arrived) if isinstance(sent, decimal.Decimal) else sent == arrived


class SerializerContract(DriverContract):
    """Subclass it with `name`, `driver_class`, and the fixture `options` if the driver needs options."""

    family = "serializer"
    driver_class: type[Serializer]

    @pytest.fixture
    def serializer(self, options: dict[str, object]) -> Serializer:
        """The driver under test."""
        return self.driver_class.open(options)

    def test_has_a_number_on_the_wire(self) -> None:
        """Readers choose the serializer by this number; 0 means no values, and WIRE.md lists the numbers in use."""
        number = self.driver_class.encoding
        assert number in PRIVATE_ENCODINGS or number in {each.value for each in Encoding if each is not Encoding.NONE}

    @pytest.mark.parametrize("value", _PLAIN, ids=lambda value: f"{value!r:.20}")
    def test_plain_values_arrive_as_they_were(self, serializer: Serializer, value: object) -> None:
        """Every serializer carries None, bool, int of 64 bits, float, str, bytes, and lists and dicts of these."""
        assert same(value, _there_and_back(serializer, value))

    @_PROPERTY
    @given(value=_values)
    def test_nested_plain_values_arrive_as_they_were(self, serializer: Serializer, value: object) -> None:
        """Nested plain values are plain values."""
        assert same(value, _there_and_back(serializer, value))

    @pytest.mark.parametrize("value", _RICH, ids=lambda value: type(value).__name__)
    def test_other_values_arrive_as_they_were_or_are_refused(self, serializer: Serializer, value: object) -> None:
        """A tuple that arrives as a list is a wrong result without an error."""
        for held in (value, [value], {"key": value}):
            try:
                payload = serializer.encode([(held,)])
            except Exception:  # noqa: S112  # refused, which is all that is asked
                continue
            ((arrived,),) = serializer.decode(payload)
            assert same(held, arrived)

    def test_objects_travel_as_declared(self, serializer: Serializer) -> None:
        """Authors of topologies rely on the flag."""
        if "objects" in serializer.capabilities:
            assert _there_and_back(serializer, Point(1, 2)) == Point(1, 2)
        else:
            with pytest.raises(SerializationError, match="Point"):
                serializer.encode([[Point(1, 2)]])

    @pytest.mark.parametrize("rows", [1, 2, 1000])
    @pytest.mark.parametrize("fields", [0, 1, 3])
    def test_a_batch_keeps_its_shape(self, serializer: Serializer, rows: int, fields: int) -> None:
        """Columns arrive in order, whether the engine passed lists or tuples."""
        for kind in (list, tuple):
            columns: list[Sequence[object]] = [kind(f"{field}-{row}" for row in range(rows)) for field in range(fields)]
            found = decode_columns(serializer.encode(columns), rows, serializer)
            assert [list(column) for column in found] == [list(column) for column in columns]

    @pytest.mark.parametrize("columns", [[["a", "b", None]], [(1, 2), ("a\0b", "ä")], [[1.5], [None], [b"x"]], []])
    def test_each_value_alone_is_as_in_its_batch(self, serializer: Serializer, columns: list[Sequence[object]]) -> None:
        """A batch with one bad value is decoded value by value, if the serializer can tell values apart."""
        payload = serializer.encode(columns)
        try:
            found = serializer.decode_each(payload)
        except SerializationError:
            return  # then the batch is lost whole
        assert list(map(list, found)) == list(map(list, serializer.decode(payload)))

    def test_its_arguments_stay_unchanged(self, serializer: Serializer) -> None:
        """The engine halves a refused batch and encodes it again; an author may change a value after its flush."""
        inner = {"a": [1]}
        columns: list[Sequence[object]] = [[inner, inner]]
        payload = serializer.encode(columns)
        assert columns == [[{"a": [1]}, {"a": [1]}]]
        inner["a"].append(2)
        ((first, _),) = serializer.decode(payload)
        assert first == {"a": [1]}

    def test_decoded_values_do_not_share_the_payload(self, serializer: Serializer) -> None:
        """A payload is part of a frame at any offset, and the engine reuses the memory of frames."""
        payload = serializer.encode([[b"bytes", "text", [1.5]]])
        frame = bytearray(b"head" + payload + b"tail")
        ((*arrived,),) = serializer.decode(memoryview(frame)[4:-4].toreadonly())
        frame[:] = bytes(len(frame))
        assert arrived == [b"bytes", "text", [1.5]]

    def test_a_large_value_arrives_whole(self, serializer: Serializer) -> None:
        """The engine limits the size of a tuple, so a serializer may not have a smaller limit."""
        for value in ("x" * _LARGE_BYTES, b"x" * _LARGE_BYTES, [1] * (_LARGE_BYTES // 10)):
            assert _there_and_back(serializer, value) == value

    def test_depth_is_carried_or_refused(self, serializer: Serializer) -> None:
        """A deeply nested value must not end the process; documents with a hundred levels are common."""
        for depth in (100, 100_000):
            value: list[object] = []
            for _ in range(depth):
                value = [value]
            try:
                payload = serializer.encode([[value]])
            except Exception:  # refused; which error it is depends on where it gave up
                assert depth > 100
            else:
                serializer.decode(payload)

    def test_a_refusal_leaves_nothing_behind(self, serializer: Serializer) -> None:
        """A refused batch must not change the next one."""
        before = serializer.encode([[1, "a"]])
        with pytest.raises(Exception):  # noqa: B017, PT011  # any, see the contract
            serializer.encode([["b", threading.Lock()]])
        assert serializer.encode([[1, "a"]]) == before

    def test_errors_have_no_values(self, serializer: Serializer) -> None:
        """Not in the text either of a cause: errors and tracebacks reach logs and pages, which may not show values."""
        lock, columns = threading.Lock(), list[list[object]]()
        for other in (7, 1.5, b"bytes", "\udc80", 2**70, lock, [lock], Point(1, 2)):
            columns += [[_SECRET, other], [other, _SECRET], [{_SECRET: other}], [[_SECRET, other]]]
        errors: list[Exception] = []
        for column in columns:
            try:
                serializer.encode([column])
            except Exception as error:
                errors.append(error)
        payload = serializer.encode([[_SECRET]])
        for size in range(len(payload)):
            try:
                serializer.decode(payload[:size])
            except Exception as error:
                errors.append(error)
        assert errors
        assert not [text for text in map(traceback_text, errors) if _SECRET in text]

    def test_it_serves_either_thread(self, serializer: Serializer) -> None:
        """The gateway thread flushes while the code of the author blocks the task thread."""
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(serializer.encode, [["from another thread"]]).result()
        assert serializer.decode(made) in ([["from another thread"]], [("from another thread",)])

    def test_another_process_reads_it(self, serializer: Serializer, options: dict[str, object]) -> None:
        """A payload may not refer to memory or objects of the process that encoded it."""
        values: list[object] = ["text", 1, 1.5, None, [True, {"a": b"b"}]]
        command = second_process(self.family, self.driver_class, options)
        answer = subprocess.run(command, input=serializer.encode([values]), capture_output=True, check=True)
        ((*arrived,),) = serializer.decode(answer.stdout)
        assert same(values, arrived)

    def test_every_cut_payload_is_an_error(self, serializer: Serializer) -> None:
        """A truncated payload must neither end the task nor decode as a batch."""
        payload = serializer.encode([[1, "text"], [b"bytes", 2.5]])
        for size in range(len(payload)):
            with pytest.raises(SerializationError):
                decode_columns(payload[:size], 2, serializer)

    @_PROPERTY
    @given(payload=st.binary(max_size=200))
    def test_rubbish_is_an_error_or_harmless(self, serializer: Serializer, payload: bytes) -> None:
        """Programs in other languages write neutral payloads; a mistake there must cost one batch, not the task."""
        requires(serializer, "neutral")
        with contextlib.suppress(SerializationError):
            decode_columns(payload, 2, serializer)


def _there_and_back(serializer: Serializer, value: object) -> object:
    ((arrived,),) = serializer.decode(serializer.encode([[value]]))
    return arrived
