"""The node HOST_BLOCKS: the hosts that schedulers avoid, and those that a person has allowed.

There is one node for all topologies of a state manager. Every change is a compare-and-set of the whole node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from heron.errors import StateConflictError, StateError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.spi.typed_values import decode_json
from heron.state_nodes.document import Format, check_format, encode_node, node_name

__all__ = [
    "JUDGE",
    "NAME",
    "HostBlock",
    "HostBlocks",
    "change_host_blocks",
    "decode_host_blocks",
    "encode_host_blocks",
    "read_host_blocks",
]

_FORMAT: Final = 1
_ATTEMPTS: Final = 10  # a judge writes a few times in a minute

NAME: Final = "all"
"""The name of the node."""

JUDGE: Final = "judge"
"""The author of the blocks that nobody but the judge has made."""


class _Head(msgspec.Struct):
    format: Format = 1


class HostBlock(msgspec.Struct, frozen=True):
    """A host that is avoided from `at_s` until `until_s`, wall-clock seconds, and who blocked it why."""

    host: str
    at_s: float
    until_s: float
    by: str
    reason: str = ""


class HostBlocks(msgspec.Struct, frozen=True):
    """All blocks, by host. `allowed` are the hosts that the judge leaves alone, each until wall-clock seconds."""

    blocks: tuple[HostBlock, ...] = ()
    allowed: dict[str, float] = msgspec.field(default_factory=dict)

    def at(self, now_s: float) -> HostBlocks:
        """Return what counts at a moment."""
        kept = tuple(each for each in self.blocks if each.until_s > now_s)
        allowed = {host: until_s for host, until_s in self.allowed.items() if until_s > now_s}
        return HostBlocks(tuple(sorted(kept, key=lambda each: each.host)), allowed)

    def hosts(self, now_s: float) -> tuple[str, ...]:
        """Return the names of the hosts that are blocked at a moment, sorted."""
        return tuple(each.host for each in self.at(now_s).blocks)

    def with_block(self, block: HostBlock) -> HostBlocks:
        """Return the list with a block, in place of that of the same host; the host is not allowed any more."""
        others = tuple(each for each in self.blocks if each.host != block.host)
        allowed = {host: until_s for host, until_s in self.allowed.items() if host != block.host}
        return HostBlocks(tuple(sorted((*others, block), key=lambda each: each.host)), allowed)

    def without(self, host: str, until_s: float) -> HostBlocks:
        """Return the list without a host, which the judge leaves alone until `until_s`."""
        kept = tuple(each for each in self.blocks if each.host != host)
        return msgspec.structs.replace(self, blocks=kept, allowed={**self.allowed, host: until_s})


def encode_host_blocks(blocks: HostBlocks) -> bytes:
    """The value of the node."""
    return encode_node(blocks, _FORMAT)


def decode_host_blocks(data: bytes) -> HostBlocks:
    """The inverse of `encode_host_blocks`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    name, what = node_name(NodeKind.HOST_BLOCKS, NAME), "list of blocked hosts"
    try:
        check_format(decode_json(data, _Head).format, _FORMAT, name, what)
        return decode_json(data, HostBlocks)
    except msgspec.MsgspecError as error:
        msg = f"{name}: the {what} cannot be read: {error}; remove the node with the tools of the state manager"
        raise StateError(msg) from error


def read_host_blocks(statemgr: StateManager) -> HostBlocks:
    """The list, also what has expired; an empty one if nobody has ever blocked a host.

    Raises:
        StateError: as `StateManager.get` does, or when the node cannot be read.
    """
    node = statemgr.get(NodeKind.HOST_BLOCKS, NAME)
    return decode_host_blocks(node.value) if node else HostBlocks()


def change_host_blocks(
    statemgr: StateManager, now_s: float, change: Callable[[HostBlocks], HostBlocks]
) -> tuple[HostBlocks, HostBlocks]:
    """Read, change and write until nobody else writes meanwhile; return the list before and after.

    What has expired at `now_s`, wall-clock seconds, is dropped. `change` may be called again. Without a change, nothing
    is written.

    Raises:
        StateConflictError: when others write all the time.
        StateError: as `StateManager.set` does.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        node = statemgr.get(NodeKind.HOST_BLOCKS, NAME)
        stored = decode_host_blocks(node.value) if node else HostBlocks()
        before = stored.at(now_s)
        after = change(before).at(now_s)
        if after == stored:
            return before, after
        try:
            version = node.version if node else MUST_NOT_EXIST
            statemgr.set(NodeKind.HOST_BLOCKS, NAME, encode_host_blocks(after), expected=version)
        except StateConflictError:
            if attempt == _ATTEMPTS:
                raise
        else:
            return before, after
    raise AssertionError  # the loop returns or raises
