"""Attacks a decoder with changed copies of good bytes: it must refuse them with its own errors, in bounds.

For authors of serializers, and of every driver that reads bytes which other processes have written:

    attack(Decoder("mine", decode, seeds=(good,), refuses=(SerializationError,)), inputs=2000)

The inputs follow from a seed, so that a failure can be repeated. Under `atheris`, `Decoder.run` is the function to
fuzz.
"""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import thread_time

__all__ = ["AttackReport", "Decoder", "attack", "mutants"]

_LEAST_BYTES = 1 << 20
_BYTES_PER_BYTE = 64.0
_SLOW_S = 0.25  # of processor time, for a small input: a busy machine may pause a thread for longer
_SLOW_S_PER_MIB = 1.0

_NUMBERS = (0, 1, 2, 3, 4, 6, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1023, 1024, 4095, 4096, 32767, 32768)
_LARGE = (65535, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 1 << 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_HUGE = (1 << 32, 1 << 48, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_FORMS = (("<B", 0xFF), ("<H", 0xFFFF), (">H", 0xFFFF), ("<I", 0xFFFFFFFF), (">I", 0xFFFFFFFF), ("<Q", (1 << 64) - 1))


@dataclass(frozen=True, slots=True)
class Decoder:
    """What is attacked: `decode` with inputs that are made from `seeds`, which it decodes, and from `bait`.

    `refuses` are the errors that it may raise. It may take `least_bytes`, and `bytes_per_byte` for each byte of the
    input. `repair` is applied to each input, so that a checksum does not hide what is behind it.
    """

    name: str
    decode: Callable[[bytes], object]
    seeds: Sequence[bytes]
    refuses: tuple[type[Exception], ...]
    least_bytes: int = _LEAST_BYTES
    bytes_per_byte: float = _BYTES_PER_BYTE
    repair: Callable[[bytes], bytes] = field(default=lambda data: data)
    bait: Sequence[bytes] = ()

    def run(self, data: bytes) -> str:
        """Decode one input: ``decoded``, or the name of the error that refuses it.

        Raises:
            Exception: any error that is not among `refuses`.
        """
        try:
            self.decode(self.repair(data))
        except self.refuses as error:
            return type(error).__name__
        return "decoded"


@dataclass(frozen=True, slots=True)
class AttackReport:
    """The results of an attack: how often each outcome of `Decoder.run` came, and the slowest and the largest input."""

    outcomes: Counter[str]
    slowest_s: float
    most_bytes: int

    @property
    def refused(self) -> int:
        """The number of inputs that were refused."""
        return self.outcomes.total() - self.outcomes["decoded"]


def attack(decoder: Decoder, inputs: int, seed: int = 1) -> AttackReport:
    """Decode the seeds, then this number of mutants of them.

    Raises:
        AssertionError: when the decoder raises another error than those of `refuses`, needs more memory or more time
            (of the processor) than its bounds, or refuses a seed; the message has the input.
    """
    outcomes: Counter[str] = Counter()
    slowest_s, most_bytes = 0.0, 0
    for each in decoder.seeds:
        outcome = decoder.run(each)
        assert outcome == "decoded", f"{decoder.name} refuses a good input: {outcome}\ninput: {each.hex()}"
    draw = random.Random(seed)  # noqa: S311  # a failure must be repeatable
    tracemalloc.start(1)
    try:
        for number, data in zip(range(inputs), mutants((*decoder.seeds, *decoder.bait), draw), strict=False):
            where = f"input {number} of seed {seed} for {decoder.name}"
            outcome, took_s, took_bytes = _measured(decoder, data, where)
            outcomes[outcome] += 1
            slowest_s, most_bytes = max(slowest_s, took_s), max(most_bytes, took_bytes)
    finally:
        tracemalloc.stop()
    return AttackReport(outcomes, slowest_s, most_bytes)


def _measured(decoder: Decoder, data: bytes, where: str) -> tuple[str, float, int]:
    limit_s = _SLOW_S + _SLOW_S_PER_MIB * len(data) / 2**20
    limit_bytes = decoder.least_bytes + decoder.bytes_per_byte * len(data)
    shown = f"input: {data[:2000].hex()}" + (f" … {len(data)} bytes" if len(data) > 2000 else "")
    tracemalloc.reset_peak()
    before_bytes = tracemalloc.get_traced_memory()[0]
    begun_s = thread_time()
    try:
        outcome = decoder.run(data)
    except Exception as error:
        message = f"{where}: {type(error).__name__}: {error}\n{shown}"
        raise AssertionError(message) from error
    took_s = thread_time() - begun_s
    took_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
    assert took_bytes <= limit_bytes, f"{where}: {took_bytes} bytes, the bound is {limit_bytes:.0f} bytes\n{shown}"
    assert took_s <= limit_s, f"{where}: {took_s:.3f} s, the bound is {limit_s:.3f} s\n{shown}"
    return outcome, took_s, took_bytes


def mutants(seeds: Sequence[bytes], draw: random.Random) -> Iterator[bytes]:
    """Yield changed copies of the seeds without end: bits, numbers and lengths, cuts, copies, parts of other seeds."""
    while True:
        data = bytearray(draw.choice(seeds))
        for _ in range(draw.choice((1, 1, 1, 2, 3, 5))):
            draw.choice(_CHANGES)(data, seeds, draw)
        yield bytes(data)


def _flip(data: bytearray, _seeds: Sequence[bytes], draw: random.Random) -> None:
    if data:
        data[_place(data, draw)] ^= 1 << draw.randrange(8)


def _number(data: bytearray, _seeds: Sequence[bytes], draw: random.Random) -> None:
    form, mask = draw.choice(_FORMS)
    size = struct.calcsize(form)
    if len(data) < size:
        return
    at = min(_place(data, draw), len(data) - size)
    present = struct.unpack_from(form, data, at)[0]
    near = present + draw.choice((-1, 1, 4, -4, len(data)))
    value = draw.choice((draw.choice(_NUMBERS), draw.choice(_LARGE), draw.choice(_HUGE), near, len(data)))
    struct.pack_into(form, data, at, value & mask)


def _cut(data: bytearray, _seeds: Sequence[bytes], draw: random.Random) -> None:
    if draw.random() < 0.5:
        del data[_place(data, draw) :]
    else:
        at = _place(data, draw)
        del data[at : at + draw.randrange(1, 9)]


def _copy(data: bytearray, _seeds: Sequence[bytes], draw: random.Random) -> None:
    at, size = _place(data, draw), draw.choice((1, 4, 8, 28, 100))
    times = draw.choice((1, 1, 1, 2, 50, 400))
    data[at:at] = bytes(data[at : at + size]) * times


def _splice(data: bytearray, seeds: Sequence[bytes], draw: random.Random) -> None:
    other = draw.choice(seeds)
    start = draw.randrange(len(other) + 1)
    at = _place(data, draw)
    data[at : at + draw.choice((0, 0, 8, len(data)))] = other[start : start + draw.choice((4, 16, 64, len(other)))]


def _fill(data: bytearray, _seeds: Sequence[bytes], draw: random.Random) -> None:
    at = _place(data, draw)
    data[at:at] = draw.randbytes(draw.choice((1, 2, 4, 16, 200)))


def _place(data: bytearray, draw: random.Random) -> int:
    """A place, more often in the first bytes, where headers are."""
    if not data:
        return 0
    return draw.randrange(min(len(data), 48)) if draw.random() < 0.5 else draw.randrange(len(data))


_CHANGES: Sequence[Callable[[bytearray, Sequence[bytes], random.Random], None]] = (
    _flip,
    _flip,
    _number,
    _number,
    _number,
    _cut,
    _copy,
    _splice,
    _fill,
)
