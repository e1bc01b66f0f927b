"""``heron health``: what ails a topology now, and what would help. It changes nothing."""

from __future__ import annotations

import click
import msgspec

from heron.errors import UsageError
from heron.spi.health import HealthPolicy
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.third_party import open_guarded
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.options import RemoteOptions, remote_options
from heron_health_manager.health_text import health_text
from heron_health_manager.observing import observe
from heron_health_manager.policy_round import Round, run_round

__all__ = ["health"]


@click.command()
@click.argument("name", shell_complete=complete_topology)
@click.option("--policy", "policy_name", default="ds2", help="The policy; an installed driver of the family health.")
@click.option("--option", "given", multiple=True, metavar="KEY=VALUE", help="Sets an option of it; repeatable.")
@remote_options(timeout_s=10.0)
def health(name: str, policy_name: str, given: tuple[str, ...], options: RemoteOptions) -> None:
    """Observes the topology NAME for some seconds and says what ails it, why, and what would help.

    It uses the read-only key and changes nothing. Each remedy is a command that you can run.
    """
    policy = _policy(policy_name, given)
    with options.connect(name) as client, client.topology(name, timeout_s=options.timeout_s) as topology:
        window = list(observe(topology, policy.rhythm().look_back_s))
    found = run_round(policy, window)
    if found is None:  # `observe` yields at least one
        return
    if options.as_json:
        click.echo(msgspec.json.encode(_document(policy_name, found)).decode())
    else:
        click.echo(health_text(found, window[-1].at_s - window[0].at_s))


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
