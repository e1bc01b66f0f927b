"""Sealed texts: only the right key opens them, for the right run and place, and errors name the remedy."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.sealing import KEY_BYTES, SealKey

_PLAIN = b"password=tell-nobody"


@pytest.fixture
def key(tmp_path: Path) -> SealKey:
    return SealKey.read(_key_file(tmp_path / "key"))


def test_a_sealed_text_opens_for_its_run_and_place(key: SealKey) -> None:
    """The text shows nothing of what it holds, and two texts of the same differ."""
    sealed = key.seal(_PLAIN, "t-1", "3")
    assert key.open(sealed, "t-1", "3") == _PLAIN
    assert b"tell" not in base64.b64decode(sealed)
    assert key.seal(_PLAIN, "t-1", "3") != sealed
    assert key.key.hex() not in repr(key)


@pytest.mark.parametrize(("run", "place"), [("t-2", "3"), ("t-1", "4"), ("t-1\0", "3"), ("t", "1-3")])
def test_a_sealed_text_is_of_no_use_elsewhere(key: SealKey, run: str, place: str) -> None:
    """A text of one container must not start another one."""
    with pytest.raises(SchedulerError, match="of another run or place"):
        key.open(key.seal(_PLAIN, "t-1", "3"), run, place)


def test_every_changed_byte_is_refused(key: SealKey) -> None:
    """Everybody who may change the job can change the text."""
    data = base64.b64decode(key.seal(b"x", "t-1", "0"))
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(SchedulerError, match="run 't-1'"):
            key.open(base64.b64encode(changed).decode(), "t-1", "0")
    for cut in range(len(data)):
        with pytest.raises(SchedulerError, match="run 't-1'"):
            key.open(base64.b64encode(data[:cut]).decode(), "t-1", "0")


def test_another_key_is_named(key: SealKey, tmp_path: Path) -> None:
    """The message has the ids of both keys, the machine and the file."""
    other = SealKey.read(_key_file(tmp_path / "other"))
    with pytest.raises(SchedulerError) as caught:
        other.open(key.seal(_PLAIN, "t-1", "0"), "t-1", "0")
    told = str(caught.value)
    assert key.id in told
    assert f"{tmp_path}/other on {os.uname().nodename} has key {other.id}" in told
    assert "copy the same key file" in told


def test_a_text_that_is_not_sealed_is_refused(key: SealKey) -> None:
    """It may come from a job that a person wrote."""
    with pytest.raises(SchedulerError, match="is not a sealed text"):
        key.open("plain words", "t-1", "0")


def test_a_missing_key_file_is_made_by_the_command_in_the_message(tmp_path: Path) -> None:
    """Without it, a person does not know what kind of file is wanted."""
    path = tmp_path / "the key"
    with pytest.raises(SchedulerError) as caught:
        SealKey.read(path)
    assert os.system(str(caught.value).split("`")[1]) == 0  # noqa: S605 - the command of the message
    assert len(SealKey.read(path).key) == KEY_BYTES


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_the_owner_and_a_group_may_read_a_key(tmp_path: Path, mode: int) -> None:
    """On agents, the key belongs to root, and the group of the topologies' user reads it."""
    assert len(SealKey.read(_key_file(tmp_path / "key", mode=mode)).key) == KEY_BYTES


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604, 0o700])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    """The message has the mode, the machine and the command that corrects it."""
    path = _key_file(tmp_path / "key", mode=mode)
    with pytest.raises(SchedulerError, match=rf"mode is {mode:04o}.*`chmod 600 {path}`"):
        SealKey.read(path)


@pytest.mark.parametrize(("size", "told"), [(0, "has 0 bytes"), (31, "has 31 bytes"), (65, "has more than 32 bytes")])
def test_a_key_of_another_size_is_refused(tmp_path: Path, size: int, told: str) -> None:
    """A key in hexadecimal, or with a line end, is another key."""
    with pytest.raises(SchedulerError, match=told):
        SealKey.read(_key_file(tmp_path / "key", size=size))


def _key_file(path: Path, *, mode: int = 0o600, size: int = KEY_BYTES) -> Path:
    path.write_bytes(os.urandom(size))
    path.chmod(mode)
    return path
