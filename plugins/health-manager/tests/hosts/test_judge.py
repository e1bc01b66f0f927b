"""The judge: few hosts are blocked, for good reasons, and none for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from heron.state_nodes.host_blocks import JUDGE, HostBlock, HostBlocks
from heron.state_nodes.host_report import COUNTS_S, HostReport, HostSigns
from heron_health_manager.hosts.judge import HostRules, judged, most_blocked

NOW_S = 1_000_000.0
RULES = HostRules()
HOSTS = tuple(f"n{number}" for number in range(8))


def report(topology: str, *bad: str, looks: int = 1, slowdown: float = 3.0, at_s: float = NOW_S) -> HostReport:
    """A report of all hosts, of which some are bad."""
    signs = (HostSigns(each, 2, slowdown if each in bad else 1.0, looks=looks if each in bad else 0) for each in HOSTS)
    return HostReport(topology, f"{topology}-1", at_s, tuple(signs))


def blocked(*reports: HostReport, blocks: HostBlocks | None = None, now_s: float = NOW_S) -> tuple[str, ...]:
    return judged(blocks or HostBlocks(), reports, now_s, RULES).hosts(now_s)


def test_a_host_that_is_bad_for_two_topologies_is_blocked() -> None:
    """What one topology has on a host cannot slow another one, unless the host is the reason."""
    after = judged(HostBlocks(), [report("a", "n1"), report("b", "n1")], NOW_S, RULES)
    (block,) = after.blocks
    assert (block.host, block.by, block.until_s) == ("n1", JUDGE, NOW_S + RULES.block_s)
    assert block.reason == "a: 3.0 times as long for a tuple; b: 3.0 times as long for a tuple"


def test_one_topology_needs_several_looks() -> None:
    """A burst, a compaction or a cold cache passes."""
    assert blocked(report("a", "n1", looks=RULES.looks - 1)) == ()
    assert blocked(report("a", "n1", looks=RULES.looks)) == ("n1",)


def test_an_old_report_does_not_count() -> None:
    """Its topology may have died; nobody removes its node."""
    old = report("a", "n1", looks=9, at_s=NOW_S - COUNTS_S - 1)
    assert blocked(old) == ()


def test_the_worst_hosts_use_the_budget() -> None:
    """A quarter of eight hosts is two; the third one waits."""
    signs = [HostSigns(each, 2, 2.0 + number, looks=9) for number, each in enumerate(HOSTS)]
    assert blocked(HostReport("a", "a-1", NOW_S, tuple(signs))) == ("n6", "n7")


def test_no_host_of_three_is_blocked() -> None:
    """The rest of a small cluster has no room for the containers of a third of it."""
    few = replace(report("a", "n1", looks=9), hosts=report("a", "n1", looks=9).hosts[:3])
    assert blocked(few) == ()


def test_a_block_is_extended_while_the_host_is_not_well() -> None:
    """Between the two limits a host is not bad enough for a block, and too bad for its end."""
    block = HostBlock("n1", NOW_S - 1000, NOW_S + 10, JUDGE)
    between = judged(HostBlocks((block,)), [report("a", "n1", slowdown=1.3)], NOW_S, RULES)
    well = judged(HostBlocks((block,)), [report("a")], NOW_S, RULES)
    assert between.blocks[0].until_s == NOW_S + RULES.block_s
    assert well.blocks == (block,)


def test_a_block_without_reports_ends() -> None:
    """All containers have left the host, so nobody can say that it is well again."""
    block = HostBlock("n1", NOW_S - 1000, NOW_S + 10, JUDGE)
    assert blocked(blocks=HostBlocks((block,)), now_s=NOW_S + 11) == ()


def test_people_come_first() -> None:
    """A block of a person stays as it is, and a host that a person has unblocked is left alone for a while."""
    block = HostBlock("n1", NOW_S - 1000, NOW_S + 10, "ann", "disk is replaced")
    listed = HostBlocks((block,), {"n2": NOW_S + 100})
    bad = (report("a", "n1", "n2", looks=9), report("b", "n1", "n2", looks=9))
    assert judged(listed, bad, NOW_S, RULES) == listed
    assert judged(listed, [replace(each, at_s=NOW_S + 101) for each in bad], NOW_S + 101, RULES).hosts(NOW_S + 101) == (
        "n1",
        "n2",
    )


@pytest.mark.parametrize("wrong", [{"slow": 1.0, "well": 1.2}, {"looks": 0}, {"block_s": 0.0}, {"most_share": 1.1}])
def test_limits_without_a_meaning_are_refused(wrong: dict[str, float]) -> None:
    """A mistake in a limit could block every host."""
    with pytest.raises(ValueError, match=r"well|looks"):
        HostRules(**wrong)  # type: ignore[arg-type] # by test


_TIMES = st.floats(-2 * COUNTS_S, 2 * COUNTS_S).map(lambda each: NOW_S + each)
_SIGNS = st.builds(
    HostSigns,
    st.sampled_from(HOSTS),
    st.integers(1, 9),
    st.none() | st.floats(0.1, 10.0),
    st.integers(0, 5),
    st.integers(0, 9),
)
_REPORTS = st.lists(
    st.builds(
        HostReport,
        st.sampled_from(["a", "b", "c"]),
        st.just("run"),
        _TIMES,
        st.lists(_SIGNS, max_size=8, unique_by=lambda each: each.host).map(tuple),
    ),
    max_size=3,
    unique_by=lambda each: each.topology,
)
_BLOCKS = st.builds(
    HostBlocks,
    st.lists(
        st.builds(HostBlock, st.sampled_from(HOSTS), st.just(NOW_S - 5), _TIMES, st.sampled_from([JUDGE, "ann"])),
        max_size=4,
        unique_by=lambda each: each.host,
    ).map(tuple),
    st.dictionaries(st.sampled_from(HOSTS), _TIMES, max_size=3),
)
_RULES = st.builds(
    HostRules,
    slow=st.floats(1.5, 4.0),
    well=st.floats(1.0, 1.5),
    looks=st.integers(1, 5),
    topologies=st.integers(1, 3),
    most_share=st.floats(0.0, 1.0),
)


@given(_BLOCKS, _REPORTS, _RULES)
def test_it_never_blocks_more_than_the_budget(blocks: HostBlocks, reports: list[HostReport], rules: HostRules) -> None:
    """Whatever is reported, what is added fits the share of the known hosts."""
    before, after = set(blocks.hosts(NOW_S)), judged(blocks, reports, NOW_S, rules).hosts(NOW_S)
    known = {signs.host for each in reports if each.counts(NOW_S) for signs in each.hosts} | before
    assert before <= set(after)
    assert len(after) <= max(len(before), most_blocked(len(known), rules))


@given(_BLOCKS, _REPORTS, _RULES)
def test_it_adds_only_what_is_proved(blocks: HostBlocks, reports: list[HostReport], rules: HostRules) -> None:
    """A new block is the judge's, of a host that is bad in a report that counts, and not of an allowed one."""
    before, after = blocks.at(NOW_S), judged(blocks, reports, NOW_S, rules)
    bad = {
        signs.host
        for each in reports
        if each.counts(NOW_S)
        for signs in each.hosts
        if (signs.slowdown or 1.0) >= rules.slow or signs.deaths >= rules.deaths
    }
    added = [each for each in after.blocks if each.host not in before.hosts(NOW_S)]
    assert {each.host for each in added} <= bad - before.allowed.keys()
    assert all(each.by == JUDGE and each.until_s > NOW_S for each in added)
    assert [each for each in after.blocks if each.by != JUDGE] == [each for each in before.blocks if each.by != JUDGE]
    assert after.allowed == before.allowed


@given(_BLOCKS, _REPORTS, _RULES)
def test_it_says_the_same_again(blocks: HostBlocks, reports: list[HostReport], rules: HostRules) -> None:
    """Two judges, and one that starts again, do no harm; the order of the reports has no meaning."""
    once = judged(blocks, reports, NOW_S, rules)
    assert judged(once, reports[::-1], NOW_S, rules) == once
    assert judged(blocks, reports[::-1], NOW_S, rules) == once


@given(_BLOCKS, _REPORTS, _RULES)
def test_every_block_ends(blocks: HostBlocks, reports: list[HostReport], rules: HostRules) -> None:
    """Without new reports, the list is empty after the longest block."""
    after = judged(blocks, reports, NOW_S, rules)
    assert judged(after, reports, NOW_S + 10 * rules.block_s + 10 * COUNTS_S, rules).blocks == ()
