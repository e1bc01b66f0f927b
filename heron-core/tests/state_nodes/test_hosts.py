"""Reports are bounded and expire; the list of blocked hosts is changed by one writer at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from heron.errors import NewerFormatError, StateError
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.host_blocks import (
    NAME,
    HostBlock,
    HostBlocks,
    change_host_blocks,
    decode_host_blocks,
    encode_host_blocks,
    read_host_blocks,
)
from heron.state_nodes.host_report import (
    COUNTS_S,
    MOST_HOSTS,
    HostReport,
    HostSigns,
    decode_host_report,
    encode_host_report,
)
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

BLOCK = HostBlock("n1", 10.0, 20.0, "ann", "disk is replaced")


@pytest.fixture
def statemgr(tmp_path: Path) -> StateManager:
    """The state manager."""
    return LocalFsStateManager(LocalFsOptions(str(tmp_path)))


def test_a_report_keeps_the_worst_hosts() -> None:
    """A topology on a thousand hosts writes a small node."""
    signs = tuple(HostSigns(f"n{number}", 1, 1.0 + number) for number in range(100))
    found = decode_host_report(encode_host_report(HostReport("words", "words-1", 5.0, signs)), "words")
    assert [each.host for each in found.hosts] == [f"n{number}" for number in range(99, 99 - MOST_HOSTS, -1)]


def test_a_report_expires() -> None:
    """Nobody removes the node of a topology that died."""
    report = HostReport("words", "words-1", 1000.0)
    assert report.counts(1000.0 + COUNTS_S)
    assert not report.counts(1000.1 + COUNTS_S)


def test_a_block_ends_by_itself() -> None:
    """So does the time for which a host is allowed."""
    blocks = HostBlocks((BLOCK,), {"n2": 30.0})
    assert blocks.hosts(19.9) == ("n1",)
    assert blocks.at(20.0) == HostBlocks((), {"n2": 30.0})
    assert blocks.at(30.0) == HostBlocks()


def test_a_host_is_either_blocked_or_allowed() -> None:
    """The newest word counts."""
    allowed = HostBlocks((BLOCK,)).without("n1", 99.0)
    assert allowed == HostBlocks((), {"n1": 99.0})
    assert allowed.with_block(BLOCK) == HostBlocks((BLOCK,))
    assert allowed.with_block(BLOCK).with_block(replace(BLOCK, by="bob")).blocks == (replace(BLOCK, by="bob"),)


def test_a_damaged_list_names_the_node() -> None:
    """It belongs to no topology, so no `heron kill` removes it."""
    assert decode_host_blocks(encode_host_blocks(HostBlocks((BLOCK,)))) == HostBlocks((BLOCK,))
    with pytest.raises(StateError, match="node hostblocks/all: the list of blocked hosts cannot be read"):
        decode_host_blocks(b"{")
    with pytest.raises(NewerFormatError, match="format 2"):
        decode_host_blocks(b'{"format": 2}')


def test_changes_do_not_get_lost(statemgr: StateManager) -> None:
    """A judge and a person may write at the same time; the one that is late reads again."""
    raced: list[bool] = []

    def change(blocks: HostBlocks) -> HostBlocks:
        if not raced:
            raced.append(True)
            change_host_blocks(statemgr, 15.0, lambda each: each.with_block(replace(BLOCK, host="n2")))
        return blocks.with_block(BLOCK)

    before, after = change_host_blocks(statemgr, 15.0, change)
    assert before.hosts(15.0) == ("n2",)
    assert after.hosts(15.0) == read_host_blocks(statemgr).hosts(15.0) == ("n1", "n2")


def test_without_a_change_nothing_is_written(statemgr: StateManager) -> None:
    """A judge looks every 15 s, and most looks change nothing."""
    change_host_blocks(statemgr, 15.0, lambda each: each)
    assert statemgr.get(NodeKind.HOST_BLOCKS, NAME) is None
    change_host_blocks(statemgr, 15.0, lambda each: each.with_block(BLOCK))
    change_host_blocks(statemgr, 15.0, lambda each: each)
    node = statemgr.get(NodeKind.HOST_BLOCKS, NAME)
    assert node is not None
    assert node.version == 1
