"""``heron health``: what ails a topology now, and what its health manager has decided."""

from __future__ import annotations

from dataclasses import replace

import click
import msgspec

from heron.errors import TopologyFailedError, UsageError
from heron.spi.health import HealthPolicy
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.third_party import open_guarded
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.text import echo, json_text
from heron_health_manager.diagnosing.health_text import health_text
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.managing.acting import Attempt
from heron_health_manager.managing.history_text import history_text
from heron_health_manager.managing.record_commands import OpenRecords, approve, open_records, set_paused
from heron_health_manager.observing.observing import observe

__all__ = ["health"]


@click.command()
@topology_argument
@click.argument("verb", required=False, type=click.Choice(["history", "pause", "resume", "approve"]))
@click.argument("number", required=False, type=click.IntRange(min=1), metavar="[ID]")
@click.option("--policy", "policy_name", default="ds2", help="The policy; an installed driver of the family health.")
@click.option("--option", "given", multiple=True, metavar="KEY=VALUE", help="Sets an option of it; repeatable.")
@remote_options(timeout_s=10.0)
def health(
    name: str,
    verb: str | None,
    number: int | None,
    policy_name: str,
    given: tuple[str, ...],
    options: RemoteOptions,
) -> None:
    """Says what ails the topology NAME, and what its health manager has decided.

    Without a further word, it observes the topology for some seconds and says what ails it, why, and what would help.
    It uses the read-only key and changes nothing. Each remedy is a command that you can run.

    `history` shows the decisions of the health manager. `pause` lets it begin nothing until `resume`. `approve ID`
    carries out what it has advised.
    """
    if (verb == "approve") != (number is not None):
        msg = "`approve` needs the ID of a decision, and no other word has one; see `heron health NAME history`"
        raise UsageError(msg)
    if verb is None:
        _observe(name, policy_name, given, options)
        return
    with options.connect(name) as client:
        choice = replace(options.choice, name=client.profile)
    with open_records(choice, name, options.timeout_s) as records:
        _tell(records, verb, number or 0, as_json=options.as_json)


def _tell(records: OpenRecords, verb: str, number: int, *, as_json: bool) -> None:
    if verb == "approve":
        how, why = approve(records, number)
        if how is not Attempt.CARRIED_OUT:
            msg = f"decision {number}: {how.value}: {why}"
            raise TopologyFailedError(msg)
        now = records.book.read().records
    elif verb == "history":
        now = records.book.read().records
    else:
        now = set_paused(records, paused=verb == "pause")
    echo(json_text(msgspec.json.encode(now)) if as_json else history_text(records.name, now))


def _observe(name: str, policy_name: str, given: tuple[str, ...], options: RemoteOptions) -> None:
    policy = _policy(policy_name, given)
    with options.topology(name) as topology:
        window = list(observe(topology, policy.rhythm().look_back_s))
    found = run_round(policy, window)
    if found is None:  # `observe` yields at least one
        return
    if options.as_json:
        echo(json_text(msgspec.json.encode(_document(policy_name, found))))
    else:
        echo(health_text(found, window[-1].at_s - window[0].at_s))


def _policy(name: str, given: tuple[str, ...]) -> HealthPolicy:
    """Opens the policy.

    Raises:
        UsageError: when an option is not KEY=VALUE.
        ConfigError: when an option is unknown or wrong.
        PluginError: when the policy is not installed or does not load.
    """
    options: dict[str, object] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            msg = f"--option {each!r} is not KEY=VALUE"
            raise UsageError(msg)
        try:
            options[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            options[key] = value
    return open_guarded(Drivers().resolve("health", name, options), HealthPolicy)


def _document(policy: str, found: Round) -> dict[str, object]:
    return {
        "topology": found.measurements.shape.name,
        "policy": policy,
        "findings": [
            {
                "diagnosis": each.diagnosis.name,
                "subject": str(each.diagnosis.subject),
                "confidence": each.diagnosis.confidence,
                "evidence": each.diagnosis.evidence,
                "action": each.action.text if each.action else "",
                "command": each.action.command if each.action else "",
            }
            for each in found.findings
        ],
        "failed": found.failed,
    }
