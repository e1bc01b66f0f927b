"""A container's spec without secrets, as Spark may carry it: references stand in place of the secrets.

The worker resolves the references again: there a secret is a file of mode 0600 at the path in the profile. A secret
that is plain text in the profile, or came from a variable of the command's environment, does not exist on the workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from heron.driver_kit.private_files import read_secret
from heron.errors import ConfigError, SchedulerError

__all__ = ["Spec", "redact_driver", "redact_spec", "resolve_driver", "resolve_spec"]

_FILE = re.compile(r"\$\{file:([^{}]+)\}")
_ANY = re.compile(r"\$\{[^{}]*\}")

Spec = dict[str, object]


def redact_spec(spec: Spec) -> Spec:
    """Return a copy of the spec without secrets.

    Raises:
        SchedulerError: when a secret has no reference to a file; names the driver that has it.
    """
    redacted: Spec = json.loads(json.dumps(spec))
    for driver in _drivers(redacted):
        redact_driver(driver)
    return redacted


def redact_driver(driver: Spec) -> Spec:
    """Remove the secrets from the description of one driver, in place. Raises SchedulerError as `redact_spec`."""
    referring = [each for each in _list(driver["referring"]) if _is_on_workers(str(each["written"]))]
    for each in referring:
        _put(driver["options"], _list(each["path"]), each["written"])
    options = json.dumps(driver["options"], ensure_ascii=False)
    for secret in map(str, _list(driver["secrets"])):
        if secret and json.dumps(secret, ensure_ascii=False)[1:-1] in options:
            msg = (
                f"{driver['family']}: a secret of the driver {driver['name']!r} cannot travel to Spark's workers; "
                "write it as ${file:PATH}, a file of mode 0600 at the same path on every worker and here"
            )
            raise SchedulerError(msg)
    driver["secrets"] = []
    driver["referring"] = referring
    return driver


def resolve_spec(spec: Spec) -> Spec:
    """Put the secrets of this machine into a redacted spec, in place.

    Raises:
        SchedulerError: when a file with a secret cannot be read here, or other users may read it.
    """
    for driver in _drivers(spec):
        resolve_driver(driver)
    return spec


def resolve_driver(driver: Spec) -> Spec:
    """Put the secrets of this machine into the description of one driver. Raises SchedulerError as `resolve_spec`."""
    secrets: list[object] = []
    for each in _list(driver["referring"]):
        _put(driver["options"], _list(each["path"]), _resolve(str(each["written"]), secrets))
    driver["secrets"] = secrets
    return driver


def _resolve(written: str, secrets: list[object]) -> str:
    def value(match: re.Match[str]) -> str:
        try:
            secrets.append(read_secret(match[1]))
        except ConfigError as error:
            raise SchedulerError(str(error)) from error
        return str(secrets[-1])

    return _FILE.sub(value, written)


def _is_on_workers(written: str) -> bool:
    """Return whether the text refers to files only. The value of a variable travels as it is, unless it is a secret."""
    return bool(_FILE.search(written)) and len(_FILE.findall(written)) == len(_ANY.findall(written))


def _drivers(spec: Spec) -> Iterator[dict[str, object]]:
    for one in ("statemgr", "uploader"):
        yield _section(spec[one])
    if spec.get("checkpoint") is not None:
        yield _section(spec["checkpoint"])
    for several in ("sinks", "serializers"):
        yield from map(_section, _list(spec[several]))
    for service in _list(spec.get("services")):
        yield from map(_section, _list(service["drivers"]))


def _section(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        msg = f"a container's spec has {type(found).__name__} in place of a driver"
        raise SchedulerError(msg)
    return found


def _list(found: object) -> list[dict[str, object]]:
    return found if isinstance(found, list) else []


def _put(options: object, path: list[dict[str, object]], value: object) -> None:
    """Replace the value at a path of keys and positions."""
    at = options
    for step in path[:-1]:
        at = at[step]  # type: ignore[index]  # as the profile was read
    at[path[-1]] = value  # type: ignore[index]
