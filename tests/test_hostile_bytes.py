"""Decoders of bytes from other processes refuse changed bytes with errors of the tree, in bounded time and memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from time import thread_time
from types import SimpleNamespace

import msgspec
import pytest
from decoders import all_decoders

from heron.checkpoints import manifest
from heron.driver_kit import large_values
from heron.instance.codec import batch_codec
from heron.ipc import envelope
from heron.ipc.frames import tracking
from heron.kernel import package
from heron.spi import typed_values
from heron.stmgr.router import Router
from heron_testing.hostile_bytes import Decoder, attack

DECODERS = {each.name: each for each in all_decoders()}
SHORT = 250
SHORT_OF_FILES = 40  # an input of these is a file, and the files that are made of it
FRAMES = ("stream-manager", "instance", "control")
LONG_OF_FRAMES = 334_000
LONG = 30_000


@pytest.mark.parametrize("name", DECODERS)
def test_changed_bytes_are_refused_in_bounds(name: str) -> None:
    """Some hundred inputs for each decoder; `./dev soak` has a million frames."""
    report = attack(DECODERS[name], SHORT_OF_FILES if name in ("package", "package-tar") else SHORT)
    assert report.refused


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", DECODERS)
def test_many_changed_bytes_are_refused_in_bounds(name: str) -> None:
    """A million frames in all, and other inputs than the short test has."""
    report = attack(DECODERS[name], LONG_OF_FRAMES if name in FRAMES else LONG, seed=2)
    assert report.refused


def _route_any(router: Router, data: bytes, start: int, end: int, destinations: tuple[int, ...]) -> None:
    router._acks.take(data, start, end, destinations[0])


NEVER = KeyError
FAULTS: dict[str, tuple[object, str, object]] = {
    "stream-manager": (Router, "_take_acks", _route_any),
    "instance": (tracking, "expect_length", lambda _holds, _head: None),
    "control": (envelope, "DecodeError", NEVER),
    "document-status": (typed_values, "RecursionError", NEVER),
    "plain": (batch_codec, "Exception", NEVER),
    "msgpack": (batch_codec, "Exception", NEVER),
    "manifest": (manifest, "msgspec", SimpleNamespace(**{**vars(msgspec), "MsgspecError": NEVER})),
    "archive": (manifest, "msgspec", SimpleNamespace(**{**vars(msgspec), "MsgspecError": NEVER})),
    "package": (package, "_BROKEN", (NEVER,)),
    "package-tar": (package, "_BROKEN", (NEVER,)),
    "large-value": (large_values, "zlib", SimpleNamespace(decompressobj=zlib.decompressobj, error=NEVER)),
}
"""For each harness a check that is taken away: a translation of errors, a length, a kind, the removal of files."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_check_that_is_taken_away_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the harness would pass whatever the decoder does."""
    place, attribute, fault = FAULTS[name]
    monkeypatch.setattr(place, attribute, fault, raising=False)
    with pytest.raises(AssertionError, match=f"for {name}"):
        attack(DECODERS[name], 20 * SHORT)


def _compute(_data: bytes) -> None:
    end_s = thread_time() + 0.4
    while thread_time() < end_s:
        pass


@pytest.mark.parametrize(
    ("decode", "found"),
    [
        (lambda data: data[30], "IndexError"),
        (lambda data: bytes(200_000 * len(data)), "the bound is"),
        (_compute, "s, the bound is"),
    ],
    ids=["error", "memory", "time"],
)
def test_an_attack_finds_errors_memory_and_time(decode: Callable[[bytes], object], found: str) -> None:
    """The three ways in which an input can hurt a process."""
    seed = bytes(40)
    with pytest.raises(AssertionError, match=found):
        attack(Decoder("weak", decode, (), (), bait=[seed]), 300)
