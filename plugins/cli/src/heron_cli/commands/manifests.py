"""``heron submit --dry-run -o yaml``: writes the objects that a scheduler would make, and makes none."""

from __future__ import annotations

import yaml

from heron.errors import UsageError
from heron.spi.engine import PipelineChoices
from heron.spi.scheduler import Scheduler
from heron_cli.catalog.other_plugins import observer_entries
from heron_cli.catalog.third_party import open_guarded
from heron_cli.interrupts import Interrupts
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.launch.prepare import plan_target
from heron_cli.launch.submission import Terms, plan_run
from heron_cli.launch.target import Target
from heron_cli.topologies.environment import ProfileChoice, find_profile
from heron_cli.view.text import echo

__all__ = ["show_manifests"]


def show_manifests(choice: ProfileChoice, labels: Target, loading: LoadingTopology, interrupts: Interrupts) -> None:
    """Write the objects of the topology that is being loaded, as documents of YAML.

    Raises:
        UsageError: when the scheduler of the profile makes no objects.
    """
    profile = find_profile(choice)
    scheduler = open_guarded(profile.scheduler, Scheduler)
    if "manifests" not in scheduler.capabilities:
        msg = f"the scheduler {profile.scheduler.name!r} of profile {profile.name!r} makes no objects; leave out -o"
        raise UsageError(msg)

    def load(choices: PipelineChoices) -> LoadedTopology:
        loading.choose(choices)
        return loading.result(interrupts.requested)

    prepared = plan_target(choice, load, None)
    terms = Terms(labels.role, labels.env)
    documents = scheduler.manifests(*plan_run(profile, prepared, observer_entries(choice.without), terms))
    echo(yaml.safe_dump_all(documents, sort_keys=False, width=120).rstrip())
