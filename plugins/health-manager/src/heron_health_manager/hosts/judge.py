"""Which hosts are blocked, from the reports of all topologies. Pure.

- A host becomes bad above `slow` or `deaths`, and only if two topologies say so, or one of them in several looks.
- A block is extended while a report has the host above `well`, which is below `slow`. It ends by itself otherwise:
  without containers nobody measures the host, so the judge tries it again.
- No block is added that would block more than the share `most_share` of the known hosts. The worst hosts come first.
- Blocks of people stay as they are, and hosts that people have allowed are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from heron.state_nodes.host_blocks import JUDGE, HostBlock, HostBlocks
from heron.state_nodes.host_report import HostReport, HostSigns

__all__ = ["HostRules", "is_bad", "judged", "most_blocked"]


@dataclass(frozen=True, slots=True)
class HostRules:
    """The limits of the judge.

    A host is bad if its tasks need `slow` times as long for a tuple as elsewhere, or if `deaths` tasks died there
    within 10 min. It is well again up to `well` and without a death. It is blocked for `block_s` seconds if it is bad
    for `topologies` topologies, or in `looks` looks of one.

    Raises:
        ValueError: when a limit has no meaning.
    """

    slow: float = 1.5
    well: float = 1.2
    deaths: int = 3
    looks: int = 4
    topologies: int = 2
    block_s: float = 1800.0
    most_share: float = 0.25

    def __post_init__(self) -> None:
        """Check the limits."""
        if not 1.0 <= self.well <= self.slow:
            msg = f"well {self.well:g} and slow {self.slow:g} are not 1 <= well <= slow"
            raise ValueError(msg)
        if min(self.deaths, self.looks, self.topologies) < 1 or self.block_s <= 0 or not 0 <= self.most_share <= 1:
            msg = "deaths, looks and topologies begin at 1, block_s is above 0 s, and most_share is within 0 and 1"
            raise ValueError(msg)


def is_bad(signs: HostSigns, rules: HostRules) -> bool:
    """Whether one topology finds a host bad in one look."""
    return (signs.slowdown or 1.0) >= rules.slow or signs.deaths >= rules.deaths


def most_blocked(known: int, rules: HostRules) -> int:
    """The number of hosts of `known` ones that may be blocked."""
    return math.floor(rules.most_share * known + 1e-9)  # 0.2 * 5 is exactly 1 for people


def judged(blocks: HostBlocks, reports: Iterable[HostReport], now_s: float, rules: HostRules) -> HostBlocks:
    """The list after one look at the reports of all topologies; `now_s` is wall-clock seconds."""
    blocks = blocks.at(now_s)
    seen = _by_host([each for each in reports if each.counts(now_s)])
    for block in blocks.blocks:
        unwell = any(_is_unwell(signs, rules) for _, signs in seen.get(block.host, ()))
        if block.by == JUDGE and unwell and block.host not in blocks.allowed:
            later_s = max(block.until_s, now_s + rules.block_s)
            blocks = blocks.with_block(msgspec.structs.replace(block, until_s=later_s))
    blocked = set(blocks.hosts(now_s))
    room = most_blocked(len(seen.keys() | blocked), rules) - len(blocked)
    found = [host for host, said in seen.items() if _is_proved(said, rules)]
    found = [host for host in found if host not in blocked and host not in blocks.allowed]
    for host in sorted(found, key=lambda each: (-_badness(seen[each]), each))[: max(0, room)]:
        block = HostBlock(host, now_s, now_s + rules.block_s, JUDGE, _reason(seen[host], rules))
        blocks = blocks.with_block(block)
    return blocks


_Said = Sequence[tuple[str, HostSigns]]
"""What topologies say of one host, by the name of the topology."""


def _by_host(reports: Iterable[HostReport]) -> dict[str, _Said]:
    found: dict[str, list[tuple[str, HostSigns]]] = {}
    for report in sorted(reports, key=lambda each: each.topology):
        for signs in report.hosts:
            found.setdefault(signs.host, []).append((report.topology, signs))
    return {host: tuple(said) for host, said in found.items()}


def _is_unwell(signs: HostSigns, rules: HostRules) -> bool:
    return (signs.slowdown or 0.0) > rules.well or signs.deaths > 0


def _is_proved(said: _Said, rules: HostRules) -> bool:
    bad = [signs for _, signs in said if is_bad(signs, rules)]
    return len(bad) >= rules.topologies or any(each.looks >= rules.looks for each in bad)


def _badness(said: _Said) -> float:
    return sum(signs.badness for _, signs in said)


def _reason(said: _Said, rules: HostRules) -> str:
    """For people, at most three topologies."""
    parts = []
    for topology, signs in said:
        if not is_bad(signs, rules):
            continue
        slow = f"{signs.slowdown:.1f} times as long for a tuple" if (signs.slowdown or 1.0) >= rules.slow else ""
        died = f"{signs.deaths} deaths in 10 min" if signs.deaths >= rules.deaths else ""
        parts.append(f"{topology}: {' and '.join(filter(None, (slow, died)))}")
    more = f"; and {len(parts) - 3} more" if len(parts) > 3 else ""
    return "; ".join(parts[:3]) + more
