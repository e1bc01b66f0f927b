"""JSON of the API and of kubeconfigs, which may have any shape."""

from __future__ import annotations

__all__ = ["Json", "fields", "items"]

Json = dict[str, object]


def fields(found: object) -> Json:
    """Return an object; one without fields for anything else."""
    return found if isinstance(found, dict) else {}


def items(found: object) -> list[Json]:
    """Return the objects of an array; none for anything else."""
    return [fields(each) for each in found] if isinstance(found, list) else []
