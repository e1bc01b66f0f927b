"""The CURVE keys of a topology. The command that starts a topology makes them; each process gets a part of them.

A key pair belongs to a kind of client, not to a process: every process of the topology has the member's pair. A process
that listens proves its identity with the server's pair and knows the public keys of the clients that it accepts.
Secrets are kept only in the state manager and in files with mode 0600. The `repr` of a pair hides its secret.

The public key of the server names a set of keys: a location says which set its endpoint has, and a process that
connects there proves its own key of that set. So both sides may have two sets while keys rotate (decision 059).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

import zmq

__all__ = ["ClientKeys", "ClientKind", "KeyPair", "KeyRing", "ServerKeys", "TopologyKeys", "keys_of_server", "new_keys"]

_KEY_LENGTH = 40  # 32 bytes in Z85


class ClientKind(enum.Enum):
    """A kind of client: a process of the topology, a command that may change it, a command that may only read."""

    MEMBER = "member"
    CONTROL = "control"
    READER = "reader"


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A Curve25519 key pair, both halves in Z85 (40 characters)."""

    public: str
    secret: str

    def __post_init__(self) -> None:
        if len(self.public) != _KEY_LENGTH or len(self.secret) != _KEY_LENGTH:
            msg = f"a key has {len(self.public)} and {len(self.secret)} characters, it must have {_KEY_LENGTH} each"
            raise ValueError(msg)

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r}, secret=...)"


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The keys of a socket that listens: its own pair, and the owner of each public key that it accepts."""

    pair: KeyPair
    clients: dict[str, ClientKind]


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """The keys of a socket that connects: the server's public key, and its own pair."""

    server_public: str
    pair: KeyPair


@dataclass(frozen=True, slots=True)
class TopologyKeys:
    """All keys of one run of a topology."""

    server: KeyPair
    member: KeyPair
    control: KeyPair
    reader: KeyPair

    def listening_to(self, *kinds: ClientKind) -> ServerKeys:
        """The keys of a socket that accepts only these clients."""
        return ServerKeys(self.server, {self._pair(kind).public: kind for kind in kinds})

    def connecting_as(self, kind: ClientKind) -> ClientKeys:
        """The keys of a socket that connects as this client."""
        return ClientKeys(self.server.public, self._pair(kind))

    def _pair(self, kind: ClientKind) -> KeyPair:
        pairs = {ClientKind.MEMBER: self.member, ClientKind.CONTROL: self.control, ClientKind.READER: self.reader}
        return pairs[kind]


@dataclass(frozen=True, slots=True)
class KeyRing(TopologyKeys):
    """The keys of a run, and while they rotate also their successors. `former` names the set that they replaced.

    A topology manager listens with the first set. Stream managers listen with each set.
    """

    next: TopologyKeys | None = None
    former: str = ""

    @classmethod
    def of(cls, keys: TopologyKeys) -> KeyRing:
        """A ring with one set."""
        return cls(keys.server, keys.member, keys.control, keys.reader)

    def sets(self) -> tuple[TopologyKeys, ...]:
        """The present set, and its successor if there is one."""
        return (self,) if self.next is None else (self, self.next)

    def follows(self, earlier: KeyRing) -> bool:
        """Whether a rotation leads from another ring to this one, or they are equal."""
        present = {keys.server.public for keys in self.sets()} | {self.former}
        return any(keys.server.public in present for keys in earlier.sets())

    def beginning(self, successors: TopologyKeys) -> KeyRing:
        """The ring of a rotation that begins."""
        return replace(self, next=successors, former="")

    def completed(self) -> KeyRing:
        """The ring without the present set; itself when keys do not rotate."""
        return self if self.next is None else replace(KeyRing.of(self.next), former=self.server.public)


def keys_of_server(server_public: str, known: Sequence[ClientKeys]) -> ClientKeys | None:
    """The keys for the server with this public key, or None; "", of an earlier version, means the first set."""
    if not server_public:
        return known[0]
    return next((each for each in known if each.server_public == server_public), None)


def new_keys() -> TopologyKeys:
    """New random keys."""
    return TopologyKeys(_new_pair(), _new_pair(), _new_pair(), _new_pair())


def _new_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode("ascii"), secret.decode("ascii"))
