"""A container's spec as it may travel through Spark: with references in place of the secrets they stand for.

On the worker they are resolved anew: a secret there is a file, mode 0600, at the path that the profile names. What
stands in a profile as a plain text, or came from a variable of the command's environment, is not on the workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from heron.driver_kit.private_files import read_secret
from heron.errors import ConfigError, SchedulerError

__all__ = ["Spec", "resolved_driver", "resolved_spec", "travelling_driver", "travelling_spec"]

_FILE = re.compile(r"\$\{file:([^{}]+)\}")
_ANY = re.compile(r"\$\{[^{}]*\}")

Spec = dict[str, object]


def travelling_spec(spec: Spec) -> Spec:
    """The spec without secrets.

    Raises:
        SchedulerError: when one would have to travel; names the driver whose it is.
    """
    travelling: Spec = json.loads(json.dumps(spec))
    for driver in _drivers(travelling):
        travelling_driver(driver)
    return travelling


def travelling_driver(driver: Spec) -> Spec:
    """The same for what names one driver, which is changed. Raises SchedulerError likewise."""
    referring = [each for each in _list(driver["referring"]) if _is_on_workers(str(each["written"]))]
    for each in referring:
        _put(driver["options"], _list(each["path"]), each["written"])
    options = json.dumps(driver["options"], ensure_ascii=False)
    for secret in map(str, _list(driver["secrets"])):
        if secret and json.dumps(secret, ensure_ascii=False)[1:-1] in options:
            msg = (
                f"{driver['family']}: a secret of the driver {driver['name']!r} cannot travel to Spark's workers; "
                "name it as ${file:PATH}, a file of mode 0600 that is at this path on every worker and here"
            )
            raise SchedulerError(msg)
    driver["secrets"] = []
    driver["referring"] = referring
    return driver


def resolved_spec(spec: Spec) -> Spec:
    """The inverse, on the worker.

    Raises:
        SchedulerError: when a file with a secret cannot be read here, or others may read it.
    """
    for driver in _drivers(spec):
        resolved_driver(driver)
    return spec


def resolved_driver(driver: Spec) -> Spec:
    """The same for what names one driver, which is changed. Raises SchedulerError likewise."""
    secrets: list[object] = []
    for each in _list(driver["referring"]):
        _put(driver["options"], _list(each["path"]), _resolved(str(each["written"]), secrets))
    driver["secrets"] = secrets
    return driver


def _resolved(written: str, secrets: list[object]) -> str:
    def value(match: re.Match[str]) -> str:
        try:
            secrets.append(read_secret(match[1]))
        except ConfigError as error:
            raise SchedulerError(str(error)) from error
        return str(secrets[-1])

    return _FILE.sub(value, written)


def _is_on_workers(written: str) -> bool:
    """Whether it refers to files only; what a variable stood for travels as it is, unless it is a secret."""
    return bool(_FILE.search(written)) and len(_FILE.findall(written)) == len(_ANY.findall(written))


def _drivers(spec: Spec) -> Iterator[dict[str, object]]:
    for one in ("statemgr", "uploader"):
        yield _section(spec[one])
    for several in ("sinks", "serializers"):
        yield from map(_section, _list(spec[several]))


def _section(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        msg = f"a container's spec has {type(found).__name__} in place of a driver"
        raise SchedulerError(msg)
    return found


def _list(found: object) -> list[dict[str, object]]:
    return found if isinstance(found, list) else []


def _put(options: object, path: list[dict[str, object]], value: object) -> None:
    """Replaces what stands at a path of keys and positions."""
    at = options
    for step in path[:-1]:
        at = at[step]  # type: ignore[index]  # as the profile was read
    at[path[-1]] = value  # type: ignore[index]
