"""What `heron status` says of a Pod: the words of Kubernetes, from real statuses of Pods."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kubernetes.access_rules import NEEDED, missing_rights
from heron_scheduler_kubernetes.pod_states import missing_reason, observation

_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1"'}}
_OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
_UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient memory.",
}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"containerStatuses": [{"state": {"running": {}}, "lastState": {}}]}, Observation(True, "n1", "", "n1")),
        (
            {"containerStatuses": [{"state": {"running": {}}, "lastState": _OOM}]},
            Observation(True, "n1", "OOMKilled, exit code 137", "n1"),
        ),
        (
            {"containerStatuses": [{"state": _IMAGE}]},
            Observation(False, "n1", 'ImagePullBackOff: Back-off pulling image "nope:1"', "n1"),
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            Observation(False, "n1", "", "n1"),
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": _OOM}]},
            Observation(False, "n1", "OOMKilled, exit code 137", "n1"),
        ),
        (
            {"conditions": [_UNSCHEDULABLE]},
            Observation(False, "n1", "Unschedulable: 0/3 nodes are available: 3 Insufficient memory.", "n1"),
        ),
        (
            {"reason": "Evicted", "message": "The node was low on memory."},
            Observation(False, "n1", "Evicted: The node was low on memory.", "n1"),
        ),
        ({}, Observation(False, "n1", "", "n1")),
    ],
)
def test_a_pod_is_observed_in_the_words_of_kubernetes(status: dict[str, object], expected: Observation) -> None:
    """People look for these words in the documents of Kubernetes."""
    assert observation({"spec": {"nodeName": "n1"}, "status": status}) == expected


def test_a_pod_that_is_never_made_has_the_reason_of_its_set() -> None:
    """A quota keeps the StatefulSet from making Pods; only an event says so."""
    events: list[dict[str, object]] = [
        {"involvedObject": {"name": "heron-a-data"}, "lastTimestamp": "2", "message": "exceeded quota: q"},
        {"involvedObject": {"name": "heron-a-data"}, "lastTimestamp": "1", "message": "older"},
        {"involvedObject": {"name": "heron-b-data"}, "lastTimestamp": "4", "message": "of another"},
    ]
    assert missing_reason(events, "heron-a-data") == "exceeded quota: q"
    assert missing_reason(events, "heron-c-data") == ""


def test_missing_rights_are_named_by_verb_and_resource() -> None:
    """`heron profiles check` says what to grant, before a submission fails half-way."""
    rules = [{"apiGroups": [group], "resources": [one], "verbs": [*verbs]} for (group, one), verbs in NEEDED.items()]
    assert missing_rights({"status": {"incomplete": False, "resourceRules": rules}}) == []
    del rules[0]["verbs"][0]
    assert missing_rights({"status": {"resourceRules": rules}}) == ["get services"]
    assert (
        missing_rights({"status": {"resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}}) == []
    )
    assert missing_rights({"status": {"incomplete": True, "resourceRules": []}}) == []


def test_the_readme_has_exactly_the_rights_that_are_needed() -> None:
    """An administrator copies them; the tests on a real server run with them."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    rules = yaml.safe_load(readme.split("### Rights")[1].split("```yaml")[1].split("```")[0])["rules"]
    found = {(rule["apiGroups"][0], rule["resources"][0]): tuple(rule["verbs"]) for rule in rules}
    assert found == dict(NEEDED)
