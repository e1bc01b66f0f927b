"""``heron explain``: what suffers in a topology, since when, why, and what to do. It changes nothing."""

from __future__ import annotations

import click
import msgspec

from heron.clock import wall_s
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.text import echo, json_text
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.explaining.explain import explain as explanation_of
from heron_health_manager.explaining.explanation_text import explanation_lines
from heron_health_manager.explaining.gathering import gather
from heron_health_manager.explaining.span import parse_since

__all__ = ["explain"]

_LONGEST_S = 15.0  # a task counts as stuck after 10 s without a tuple


@click.command()
@topology_argument
@click.option(
    "--since", default="10min", show_default=True, metavar="T", help="Explains what happened since: 90s, 2h, or a time."
)
@click.option(
    "--observe",
    "observe_s",
    type=click.FloatRange(min=1.0),
    default=_LONGEST_S,
    show_default=True,
    metavar="SECONDS",
    help="How long its load is observed at most; 5 s if no task stands still and no memory grows.",
)
@remote_options(timeout_s=10.0)
def explain(name: str, since: str, observe_s: float, options: RemoteOptions) -> None:
    """Says in at most eight lines what suffers in the topology NAME, since when, why, and what to do.

    It uses the read-only key and changes nothing. A topology that has ended is explained by its last report and its
    logs on this machine; T then counts from its end.
    """
    span = parse_since(since, wall_s())
    policy = Ds2Policy.open({"period_s": observe_s, "look_back_s": observe_s})
    with options.connect(name) as client:
        explanation = explanation_of(gather(client, name, policy, span, options.timeout_s))
    if options.as_json:
        echo(json_text(msgspec.json.encode(explanation)))
    else:
        echo("\n".join(explanation_lines(explanation)))
