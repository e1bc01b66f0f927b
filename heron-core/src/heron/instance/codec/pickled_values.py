"""The values of a pickled batch, each decoded alone: for a batch that does not decode as a whole.

A batch is pickled without a memo, so the bytes of a value are in one piece and refer to nothing before them. The
opcodes say where each value begins and ends. Nothing here runs for a batch that decodes.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from heron.errors import SerializationError
from heron.spi.serializer import UndecodableValue

__all__ = ["decode_each", "decode_each_row"]

_REMEDY: Final = (
    "define its class at the top level of a module that every component can import; if its constructor needs other "
    "arguments than those that were pickled, give it a __reduce__ (an exception: pass all arguments to "
    "super().__init__); or emit plain data"
)

_PROTO = pickle.PROTO + b"\x05"
_OF_MEMO = frozenset({"GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_UNUSUAL = frozenset({"DUP", "POP", "POP_MARK"})  # no pickler writes them without a memo
_SEQUENCES = frozenset({"EMPTY_LIST", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"})
_INNER_PICKLE = "_pickle.loads"


@dataclass(slots=True)
class _Part:
    """What an opcode leaves on the stack: the bytes that make it, and the parts that those opcodes take."""

    opcode: str
    start: int
    end: int
    parts: list[_Part] = field(default_factory=list)


def decode_each(payload: bytes) -> list[Sequence[object]]:
    """The columns of a payload, with an `UndecodableValue` for each value that does not decode.

    Raises:
        SerializationError: when the payload is not a list of columns, or was pickled with a memo.
    """
    try:
        data, batch = _parsed(payload)
    except (ValueError, IndexError) as error:
        msg = f"the payload is not a whole pickle: {error}"
        raise SerializationError(msg) from error
    if batch.opcode not in _SEQUENCES or any(column.opcode not in _SEQUENCES for column in batch.parts):
        msg = "the payload is not a list of columns"
        raise SerializationError(msg)
    return [[_decoded(data, value) for value in column.parts] for column in batch.parts]


def decode_each_row(rows: Sequence[bytes], arity: int) -> list[Sequence[object]]:
    """The columns of rows that were pickled one by one; all values of a row that does not decode are undecodable."""
    decoded = [_decoded_row(row, arity) for row in rows]
    return [[values[field] for values in decoded] for field in range(arity)]


def _decoded_row(row: bytes, arity: int) -> Sequence[object]:
    try:
        values = pickle.loads(row)  # noqa: S301  # only from the topology itself
    except Exception as error:
        return [UndecodableValue(_class_name(row), error, _REMEDY)] * arity
    return [values] if arity == 1 else values


def _decoded(data: bytes, value: _Part) -> object:
    try:
        return _load(data, value)
    except Exception as error:
        return UndecodableValue(_class_name(_pickle_of(data, _culprit(data, value))), error, _REMEDY)


def _culprit(data: bytes, value: _Part) -> _Part:
    """The innermost part that does not decode: a container may hold the bad object."""
    while (bad := next((part for part in value.parts if not _loads(data, part)), None)) is not None:
        value = bad
    return value


def _loads(data: bytes, part: _Part) -> bool:
    try:
        _load(data, part)
    except Exception:
        return False
    return True


def _load(data: bytes, part: _Part) -> object:
    return pickle.loads(_pickle_of(data, part))  # noqa: S301  # only from the topology itself


def _pickle_of(data: bytes, part: _Part) -> bytes:
    return _PROTO + data[part.start : part.end] + pickle.STOP


def _class_name(pickled: bytes) -> str:
    """Module and name of the first class or function of a pickle."""
    texts: list[str] = []
    name = ""
    for opcode, argument, _ in pickletools.genops(pickled):
        if name == _INNER_PICKLE and isinstance(argument, bytes):
            return _class_name(argument)
        if name not in ("", _INNER_PICKLE):
            break
        if opcode.name == "STACK_GLOBAL" and len(texts) > 1:
            name = ".".join(texts[-2:])
        elif opcode.name in ("GLOBAL", "INST") and isinstance(argument, str):
            name = argument.replace(" ", ".")
        elif isinstance(argument, str):
            texts.append(argument)
    return name or "unknown"


def _parsed(payload: bytes) -> tuple[bytes, _Part]:
    """The payload without frames, which may end within a value, and its only object."""
    kept: list[bytes] = []
    removed = 0
    stack: list[_Part] = []
    marks: list[tuple[int, int]] = []  # the height of the stack, and the place of the opcode
    for opcode, start, end in _opcodes(payload):
        if opcode.name in _OF_MEMO or opcode.name in _UNUSUAL:
            msg = f"{opcode.name}: its values may refer to each other"
            raise ValueError(msg)
        if opcode.name == "FRAME":
            removed += end - start
            continue
        kept.append(payload[start:end])
        if opcode.name == "MARK":
            marks.append((len(stack), start - removed))
        elif opcode.stack_after:
            _apply(opcode, start - removed, end - removed, stack, marks)
    if len(stack) != 1 or marks:
        msg = f"it leaves {len(stack)} objects"
        raise ValueError(msg)
    return b"".join(kept), stack[0]


def _apply(
    opcode: pickletools.OpcodeInfo, start: int, end: int, stack: list[_Part], marks: list[tuple[int, int]]
) -> None:
    """Replaces what an opcode takes from the stack by what it leaves."""
    height = len(stack) - len(opcode.stack_before)
    if pickletools.markobject in opcode.stack_before:
        height, start = marks.pop()
        height -= opcode.stack_before.index(pickletools.markobject)
    if height < 0:
        msg = f"{opcode.name} takes more than the stack has"
        raise ValueError(msg)
    parts = stack[height:]
    del stack[height:]
    if opcode.name in ("APPEND", "APPENDS"):
        made = parts[0]
        made.parts += parts[1:]
        made.end = end
    else:
        made = _Part(opcode.name, min([start, *(part.start for part in parts[:1])]), end, parts)
    stack.append(made)


def _opcodes(payload: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, int, int]]:
    """Each opcode with the places where it begins and ends."""
    found = [(opcode, place) for opcode, _, place in pickletools.genops(payload) if place is not None]
    ends = chain((place for _, place in found[1:]), (len(payload),))
    return ((opcode, place, end) for (opcode, place), end in zip(found, ends, strict=True))
