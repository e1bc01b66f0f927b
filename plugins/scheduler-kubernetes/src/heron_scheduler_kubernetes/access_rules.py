"""The rights that the scheduler needs, and which of them a user lacks. Pure. The README has them as a Role."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NEEDED", "missing_rights"]

NEEDED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "services"): ("get", "create", "patch", "delete"),
    ("", "secrets"): ("create", "patch", "delete"),
    ("", "pods"): ("get", "list", "delete", "deletecollection"),
    ("", "pods/log"): ("get",),
    ("", "events"): ("list",),
    ("apps", "statefulsets"): ("list", "create", "patch", "deletecollection"),
}
"""Verbs by group and resource. Nobody needs to read a Secret: commands write launch files, and kubelets mount them."""


def missing_rights(review: Mapping[str, object]) -> list[str]:
    """Return the rights that the answer to a SelfSubjectRulesReview lacks; none if the server cannot tell them all."""
    status = review.get("status")
    if not isinstance(status, dict) or status.get("incomplete"):
        return []
    lacking = []
    for (group, resource), verbs in NEEDED.items():
        missing = [verb for verb in verbs if not _allows(status.get("resourceRules"), group, resource, verb)]
        if missing:
            lacking.append(f"{', '.join(missing)} {resource}")
    return lacking


def _allows(rules: object, group: str, resource: str, verb: str) -> bool:
    wanted = {"apiGroups": group, "resources": resource, "verbs": verb}
    return isinstance(rules, list) and any(
        not rule.get("resourceNames") and all({value, "*"} & set(rule.get(key) or ()) for key, value in wanted.items())
        for rule in rules
    )
