"""Seals what travels to containers in places that others can read, with a key file; decision 087.

A cluster without secrets shows its jobs to every user. So secrets travel *sealed*: encrypted, and authenticated
together with the run and the place that they are for. The key is a file of 32 bytes on the machine that submits and on
every machine that runs containers.

The text is base64 of ``FORMAT | ID | NONCE | CIPHERTEXT``. `ID` are four bytes that tell a wrong key from damage.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from heron.errors import SchedulerError

__all__ = ["KEY_BYTES", "SealKey"]

KEY_BYTES: Final = 32

_FORMAT = b"\x01"
_ID_BYTES = 4
_NONCE_BYTES = 12  # random: one key may seal 2**32 texts (NIST SP 800-38D, 8.3)
_HEADER_BYTES = len(_FORMAT) + _ID_BYTES + _NONCE_BYTES
_MODE = 0o640


@dataclass(frozen=True, slots=True)
class SealKey:
    """A key, and the file that it was read from."""

    path: Path
    key: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key file.

        Raises:
            SchedulerError: when it is missing, other users may use it, or it does not have 32 bytes.
        """
        quoted = shlex.quote(str(path))
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                key = file.read(KEY_BYTES + 1)
        except FileNotFoundError as error:
            make = f"(umask 077; head -c {KEY_BYTES} /dev/urandom > {quoted})"
            msg = f"the key file {path} does not exist on {_here()}; copy it there, or make the first one: `{make}`"
            raise SchedulerError(msg) from error
        except OSError as error:
            user = f"user {os.getuid()} on {_here()}"
            msg = f"the key file {path} cannot be read by {user}: {error.strerror}; correct its owner or group"
            raise SchedulerError(msg) from error
        if mode & ~_MODE:
            wrong = f"its mode is {mode:04o}, and must be 0600 or {_MODE:04o}"
            msg = f"too many users can access the key file {path} on {_here()}: {wrong}; `chmod 600 {quoted}`"
            raise SchedulerError(msg)
        if len(key) != KEY_BYTES:
            size = f"more than {KEY_BYTES}" if len(key) > KEY_BYTES else len(key)
            msg = f"the key file {path} on {_here()} has {size} bytes, and must have {KEY_BYTES}; copy it as it is"
            raise SchedulerError(msg)
        return cls(path, key)

    @property
    def id(self) -> str:
        """Eight digits that differ from key to key, for messages."""
        return self._id.hex()

    def seal(self, plain: bytes, topology_id: str, place: str) -> str:
        """Return the text that only `open` with this key, run and place turns back; each call returns another text."""
        nonce = os.urandom(_NONCE_BYTES)
        header = _FORMAT + self._id + nonce
        return base64.b64encode(header + AESGCM(self.key).encrypt(nonce, plain, _bound(topology_id, place))).decode()

    def open(self, sealed: str, topology_id: str, place: str) -> bytes:
        """Return what was sealed for a run and a place.

        Raises:
            SchedulerError: when it was sealed with another key or for another run or place, or was changed. The message
                shows nothing of it.
        """
        what = f"what was sealed for {place!r} of run {topology_id!r}"
        try:
            data = base64.b64decode(sealed, validate=True)
        except (binascii.Error, ValueError) as error:
            msg = f"{what} is not a sealed text; kill the topology, and submit it again"
            raise SchedulerError(msg) from error
        if data[:1] != _FORMAT or len(data) < _HEADER_BYTES:
            msg = f"{what} has another format; install the same version of heron-scheduler-kit everywhere"
            raise SchedulerError(msg)
        used = data[len(_FORMAT) : len(_FORMAT) + _ID_BYTES]
        if used != self._id:
            keys = f"was sealed with key {used.hex()}, and {self.path} on {_here()} has key {self.id}"
            msg = f"{what} {keys}; copy the same key file to all machines, then submit the topology again"
            raise SchedulerError(msg)
        nonce = data[_HEADER_BYTES - _NONCE_BYTES : _HEADER_BYTES]
        try:
            return AESGCM(self.key).decrypt(nonce, data[_HEADER_BYTES:], _bound(topology_id, place))
        except InvalidTag as error:
            msg = f"{what} was changed, or is of another run or place; kill the topology, and submit it again"
            raise SchedulerError(msg) from error

    @property
    def _id(self) -> bytes:
        return hmac.digest(self.key, b"heron seal key", hashlib.sha256)[:_ID_BYTES]


def _bound(topology_id: str, place: str) -> bytes:
    return f"heron seal 1\0{topology_id}\0{place}".encode()


def _here() -> str:
    return os.uname().nodename
