"""A setting of Spark that is true or false, read as Spark reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from heron.errors import SchedulerError

__all__ = ["flag"]


def flag(conf: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    """What `conf` says, in letters of any case; `otherwise` where it says nothing.

    Raises:
        SchedulerError: when it says neither: Spark would end with a stack trace.
    """
    written = conf.get(name, str(otherwise)).strip().lower()
    if written not in {"true", "false"}:
        msg = f"scheduler.conf: {name} is {conf[name]!r}; set it to true or false"
        raise SchedulerError(msg)
    return written == "true"
