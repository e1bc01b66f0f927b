"""``--from-checkpoint``: resolves and checks the checkpoint with which a topology starts."""

from __future__ import annotations

from dataclasses import replace

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TOPOLOGY_STATEFUL_START_FROM
from heron.api.config import setting, takes_checkpoints
from heron.checkpoints.compatibility import check_compatible
from heron.errors import UsageError
from heron_cli.launch.prepare import Prepared
from heron_cli.profiles import Profile
from heron_cli.topologies.checkpoint_list import find_manifest, open_archive

__all__ = ["start_from"]


def start_from(prepared: Prepared, profile: Profile, checkpoint: str) -> Prepared:
    """Return the topology with the id of a checkpoint in its configuration; "" changes nothing.

    `checkpoint` is RUN/NUMBER, or ``latest`` for the newest complete one of a topology of that name.

    Raises:
        UsageError: when the topology takes no checkpoints.
        ConfigError: when the profile has no checkpoint store.
        CheckpointError: when the checkpoint does not exist, it cannot be read, or its state does not fit the topology.
    """
    if not checkpoint:
        return prepared
    loaded = prepared.loaded
    definition = loaded.definition
    if not takes_checkpoints(definition.config):
        mode = setting(definition.config, TOPOLOGY_RELIABILITY_MODE)
        msg = (
            f"--from-checkpoint {checkpoint!r:.80}: topology {definition.name!r} has {TOPOLOGY_RELIABILITY_MODE} "
            f"{mode} without checkpoints; set it to EFFECTIVELY_ONCE, or set the interval of checkpoints too"
        )
        raise UsageError(msg)
    manifest = find_manifest(open_archive(profile, definition.name), definition.name, checkpoint)
    check_compatible(manifest, definition)
    config = {**definition.config, TOPOLOGY_STATEFUL_START_FROM: str(manifest.id)}
    return replace(prepared, loaded=replace(loaded, definition=replace(definition, config=config)))
