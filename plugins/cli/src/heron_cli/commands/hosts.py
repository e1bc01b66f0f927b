"""``heron hosts``: what topologies report of the hosts, and which hosts schedulers avoid."""

from __future__ import annotations

import re

import click

from heron.clock import wall_s
from heron.errors import UsageError
from heron.state_nodes.host_blocks import HostBlocks
from heron.state_nodes.host_report import HostReport, HostSigns
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, profile_option
from heron_cli.launch.target import user_name
from heron_cli.topologies.hosts import HostList
from heron_cli.view.text import columns, counted, echo, format_age, print_json

__all__ = ["hosts"]

_profile = profile_option("The profile whose state manager has the list.")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)")
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@click.group()
def hosts() -> None:
    """Shows, blocks and unblocks hosts.

    Schedulers that can avoid hosts start no container on a blocked host. What runs there stays, until somebody restarts
    its container, or the health manager of its topology moves it.
    """


@hosts.command("list")
@_profile
@choice_options(without=False)
@json_option
def list_hosts(profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Lists the hosts that topologies have reported within the last minutes, and those that are blocked."""
    with HostList.open(options.choose(profile)) as found:
        reports, blocks = found.reports(), found.blocks()
    if as_json:
        print_json(_document(reports, blocks))
        return
    rows = [("host", "tasks", "service time", "deaths", "reported by", "state"), *_rows(reports, blocks)]
    for line in columns(rows):
        echo(line)
    known = {signs.host for report in reports for signs in report.hosts}
    echo(f"{counted(len(known), 'host')} reported by {counted(len(reports), 'topology')}, {len(blocks.blocks)} blocked")


@hosts.command()
@click.argument("host")
@click.option(
    "--for", "span", default="2h", show_default=True, metavar="TIME", help="Ends by itself: 90s, 10min, 2h, 1d."
)
@click.option("--reason", default="", help="Why, for those who see the list.")
@_profile
@choice_options(without=False)
@json_option
def block(host: str, span: str, reason: str, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Blocks HOST, by its name in `heron hosts list`: no container starts there from now on."""
    with HostList.open(options.choose(profile)) as found:
        made = found.block(host, _seconds(span), by=user_name(), reason=reason)
    if as_json:
        print_json({"host": host, "until_s": made.until_s, "by": made.by, "reason": reason})
    else:
        echo(f"{host} is blocked for {span} by {made.by}")


@hosts.command()
@click.argument("host")
@click.option(
    "--for", "span", default="1h", show_default=True, metavar="TIME", help="The judge leaves it alone so long."
)
@_profile
@choice_options(without=False)
@json_option
def unblock(host: str, span: str, profile: str, options: ChoiceOptions, as_json: bool) -> None:
    """Ends the block of HOST, also one that the judge has made."""
    with HostList.open(options.choose(profile)) as found:
        found.unblock(host, _seconds(span))
    if as_json:
        print_json({"host": host})
    else:
        echo(f"{host} is not blocked any more")


def _seconds(span: str) -> float:
    """Return a span such as ``90s`` in seconds. Raises UsageError when it is none."""
    found = _SPAN.fullmatch(span.strip())
    if found is None:
        msg = f"--for {span!r} is no time such as 90s, 10min, 2h or 1d"
        raise UsageError(msg)
    return float(found[1]) * _UNITS_S[found[2]]


def _rows(reports: tuple[HostReport, ...], blocks: HostBlocks) -> list[tuple[str, ...]]:
    states = {each.host: _state(each.until_s, each.by, each.reason) for each in blocks.blocks}
    states |= {host: f"allowed for {_left(until_s)}" for host, until_s in blocks.allowed.items()}
    said = [(signs.host, _signs(signs, report.topology)) for report in reports for signs in report.hosts]
    rows: list[tuple[str, ...]] = [(host, *cells, states.get(host, "")) for host, cells in sorted(said)]
    silent = sorted(states.keys() - {host for host, _ in said})
    return rows + [(host, "", "", "", "", states[host]) for host in silent]


def _signs(signs: HostSigns, topology: str) -> tuple[str, str, str, str]:
    slowdown = "" if signs.slowdown is None else f"{signs.slowdown:.2f} x"
    return f"{signs.tasks}", slowdown, f"{signs.deaths}", topology


def _state(until_s: float, by: str, reason: str) -> str:
    return f"blocked by {by}, {_left(until_s)} left" + (f": {reason}" if reason else "")


def _left(until_s: float) -> str:
    return format_age(max(0.0, until_s - wall_s()))


def _document(reports: tuple[HostReport, ...], blocks: HostBlocks) -> dict[str, object]:
    return {
        "reports": [
            {
                "host": signs.host,
                "topology": report.topology,
                "at_s": report.at_s,
                "tasks": signs.tasks,
                "slowdown": signs.slowdown,
                "deaths": signs.deaths,
                "looks": signs.looks,
            }
            for report in reports
            for signs in report.hosts
        ],
        "blocks": [
            {"host": each.host, "at_s": each.at_s, "until_s": each.until_s, "by": each.by, "reason": each.reason}
            for each in blocks.blocks
        ],
        "allowed": blocks.allowed,
    }
