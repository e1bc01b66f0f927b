"""The judge of hosts: it reads what topologies report of their hosts, and blocks those that are bad for all.

Submit it once for each state manager:  heron submit local examples/hosts.py -- --profile local
Then `heron hosts list` shows what it has blocked and why. Its containers need heron-health-manager and the profile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple
from heron.errors import HeronError
from heron.state_nodes.host_report import decode_host_report, encode_host_report
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.topologies.hosts import HostList
from heron_health_manager.hosts.judge import HostRules, judged


class Reports(Spout):
    """Emits the reports of all topologies, once for each look."""

    outputs = ("reports",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.hosts = HostList.open(ProfileChoice(config["profile"]))
        self.period_s = config["period"]
        self.due_s = 0.0

    def next_tuple(self) -> None:
        if time.monotonic() < self.due_s:
            return
        self.due_s = time.monotonic() + self.period_s
        try:
            found = self.hosts.reports()
        except HeronError as error:  # the state manager is away; look again later
            print(f"no reports: {error}", flush=True)
            return
        self.emit([{each.topology: encode_host_report(each) for each in found}])


class Judge(Bolt):
    """Changes the list of blocked hosts. A task that starts again goes on from the list."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.hosts = HostList.open(ProfileChoice(config["profile"]))
        self.rules = HostRules(**config["rules"])

    def process(self, tup: Tuple) -> None:
        reports = [decode_host_report(report, topology) for topology, report in tup.values[0].items()]
        try:
            before, after = self.hosts.change(lambda blocks: judged(blocks, reports, time.time(), self.rules))
        except HeronError as error:
            print(f"the list stays as it is: {error}", flush=True)
            return
        known = {each.host for each in before.blocks}
        for each in after.blocks:
            if each.host not in known:
                print(f"blocked {each.host}: {each.reason}", flush=True)


def hosts(arguments: Sequence[str] = ()) -> TopologyBuilder:
    """Build the topology for these command-line arguments."""
    rules = HostRules()
    parser = argparse.ArgumentParser(prog="hosts.py", description="blocks hosts that are bad for several topologies")
    parser.add_argument("--profile", default="local", help="whose state manager has the reports (default: local)")
    parser.add_argument("--period", type=float, default=15.0, help="seconds between looks (default: 15)")
    parser.add_argument("--slow", type=float, default=rules.slow, help="a host is bad at this slowdown (default: 1.5)")
    parser.add_argument("--looks", type=int, default=rules.looks, help="bad looks of one topology (default: 4)")
    parser.add_argument("--minutes", type=float, default=rules.block_s / 60, help="how long to block (default: 30)")
    parser.add_argument("--share", type=float, default=rules.most_share, help="of hosts, at most (default: 0.25)")
    options = parser.parse_args(arguments)
    chosen = {
        "slow": options.slow,
        "looks": options.looks,
        "block_s": 60 * options.minutes,
        "most_share": options.share,
    }
    try:
        HostRules(**chosen)
    except ValueError as error:
        parser.error(str(error))

    builder = TopologyBuilder("hosts")
    builder.set_config({"profile": options.profile, "period": options.period, "rules": chosen})
    reports = builder.add_spout("reports", Reports, par=1)
    builder.add_bolt("judge", Judge, par=1, inputs={reports: Grouping.SHUFFLE})
    return builder


if __name__ == "__main__":
    hosts(sys.argv[1:]).build_and_submit()
