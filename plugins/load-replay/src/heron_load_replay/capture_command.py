"""``heron capture``: what the spouts of a running topology emit, as a Parquet file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from heron_cli.client import Client
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.view.text import echo, format_bytes, format_count, print_json
from heron_load_replay.capturing import CaptureTerms, capture_topology, described
from heron_load_replay.load_description import LoadDescription
from heron_load_replay.load_rows import load_rows

__all__ = ["capture"]

_LONGEST_S = 300.0
_MIB = 1 << 20


@click.command()
@topology_argument
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, max=_LONGEST_S, min_open=True),
    default=30.0,
    show_default=True,
    help="How long it captures.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@click.option("--shape", is_flag=True, help="Takes no value out of the topology: keys as hashes, others by length.")
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=4096),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The most that all tasks record together, at most 32 MiB each.",
)
@remote_options(timeout_s=20.0, timeout_help="The longest wait for the answers after these seconds.")
def capture(name: str, seconds: float, out: Path, shape: bool, limit: int, options: RemoteOptions) -> None:
    """Captures what the spouts of the topology NAME emit, for `heron replay`.

    Each task may spend a hundredth of its time on it: of a faster spout, the file has a sample of the values, and every
    arrival. The topology must allow values with topology.inspect.tuples; it need not for --shape.
    """
    from heron_load_replay.load_file import write_load  # noqa: PLC0415  # it imports Arrow, which other commands need not wait for

    terms = CaptureTerms(seconds, limit * _MIB, shape)
    with options.connect(name) as client:
        choice = replace(options.choice, name=client.profile)
    clients: list[Client] = []

    def connected() -> RemoteTopology:
        clients.append(own := Client(choice))
        return own.topology(name, timeout_s=options.timeout_s)

    echo(f"capturing {name} for {seconds:g} s", err=True)
    try:
        definition, tasks = capture_topology(connected, terms)
    finally:
        for each in clients:
            each.close()
    description = described(definition, tasks, terms)
    write_load(out, description, load_rows(tasks))
    if options.as_json:
        print_json(description)
    else:
        for line in _lines(out, description):
            echo(line)


def _lines(out: Path, description: LoadDescription) -> list[str]:
    what = "shapes" if description.shape else "values"
    lines = [
        f"{out}: {format_count(description.tuples)} tuples of {description.seconds:.1f} s, with "
        f"{format_count(description.kept)} {what}; {format_bytes(out.stat().st_size)}"
    ]
    if description.after_limit:
        lines.append(
            f"the limit was reached: {format_count(description.after_limit)} later tuples are not in the file; "
            "give a larger --limit or fewer --seconds"
        )
    for reason, number in sorted(description.unkept.items()):
        lines.append(f"{format_count(number)} tuples have values of their neighbours: {reason}")
    return lines
