"""The options of a topology by streamparse's precedence, and what Heron makes of them.

Precedence: arguments, then the `config` of the class, then the environment's ``options``. A key that Heron has too is
taken over. Of Storm's own keys, two are mapped; the others have no effect, and components see them in `storm_conf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_ACKING, TOPOLOGY_NAME, TOPOLOGY_RELIABILITY_MODE, TOPOLOGY_STMGRS
from heron.api.config import CONFIG_KEYS, TopologyReliabilityMode
from heron.author_text import short_text
from heron.errors import ConfigError
from heron_compat_streamparse.project.project import Environment

__all__ = ["ACKERS", "WORKERS", "StormOptions", "resolve", "split_component"]

WORKERS = "topology.workers"
ACKERS = "topology.acker.executors"
_OWN = "topology."
_LOG = {"path": str, "file": str, "max_bytes": int, "backup_count": int, "level": str}
_SHORT = {"worker_count": WORKERS, "acker_count": ACKERS}  # keys of an environment in older projects
_SILENT = frozenset({WORKERS, ACKERS, TOPOLOGY_NAME, "topology.python.path", "topology.original_name"})


@dataclass(frozen=True, slots=True)
class StormOptions:
    """Options divided by who reads them.

    Attributes:
        heron: the configuration for Heron, with the author's own keys.
        storm: keys of Storm that Heron does not have; only `storm_conf` shows them.
        ignored: those of `storm` whose absence an author should know.
    """

    heron: dict[str, object]
    storm: dict[str, object]
    ignored: tuple[str, ...] = ()


def resolve(
    arguments: Mapping[str, object], own: Mapping[str, object], environment: Environment, place: str
) -> StormOptions:
    """Return the options of a topology.

    Raises:
        ConfigError: when the number of workers or ackers is not one.
    """
    merged = {**_logging(environment), **_counts(environment), **environment.options, **own, **arguments}
    if merged.get("topology.debug"):
        merged["pystorm.log.level"] = "debug"
    options = _split(merged, component=False)
    workers = _number(options.storm.setdefault(WORKERS, merged.get(TOPOLOGY_STMGRS, 1)), f"{place}: {WORKERS}", 1)
    ackers = _number(options.storm.setdefault(ACKERS, workers), f"{place}: {ACKERS}", 0)
    options.heron.setdefault(TOPOLOGY_STMGRS, workers)
    if TOPOLOGY_ACKING not in options.heron:
        mode = TopologyReliabilityMode.ATLEAST_ONCE if ackers else TopologyReliabilityMode.ATMOST_ONCE
        options.heron.setdefault(TOPOLOGY_RELIABILITY_MODE, mode.value)
    return options


def split_component(config: Mapping[str, object]) -> StormOptions:
    """Return the options of a component; settings of the whole topology have no effect there, as in Storm."""
    return _split(config, component=True)


def _split(merged: Mapping[str, object], *, component: bool) -> StormOptions:
    heron: dict[str, object] = {}
    storm: dict[str, object] = {}
    for key, value in merged.items():
        if value is None:
            continue  # in Storm, a key that is not set
        known_key = CONFIG_KEYS.get(key)
        is_ours = known_key is not None and (known_key.component or not component) and key != TOPOLOGY_NAME
        (heron if is_ours or not key.startswith(_OWN) else storm)[key] = value
    return StormOptions(heron, storm, tuple(sorted(set(storm) - _SILENT)))


def _logging(environment: Environment) -> dict[str, object]:
    log = environment.settings.get("log")
    found = dict(log) if isinstance(log, dict) else {}
    for name in ("path", "file"):
        found[name] = found.get(name) or environment.settings.get(f"log_{name}")
    options = {f"pystorm.log.{name}": found[name] for name, kind in _LOG.items() if isinstance(found.get(name), kind)}
    if isinstance(level := options.get("pystorm.log.level"), str):
        options["pystorm.log.level"] = level.lower()
    return {key: value for key, value in options.items() if value != ""}


def _counts(environment: Environment) -> dict[str, object]:
    return {key: environment.settings[name] for name, key in _SHORT.items() if name in environment.settings}


def _number(value: object, place: str, least: int) -> int:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{place}: {short_text(value)} is not a whole number of at least {least}; give one"
        raise ConfigError(msg)
    return value
