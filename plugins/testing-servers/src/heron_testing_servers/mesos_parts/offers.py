"""The offers of the Mesos test server: what each agent has left, who gets it, and what becomes of an offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from heron.clock import monotonic_s
from heron_testing_servers.mesos_parts.agent import TERMINAL, Agent
from heron_testing_servers.mesos_parts.framework import Framework
from heron_testing_servers.mesos_parts.resources import Resources

__all__ = ["Offer", "Offers", "used"]

Json = dict[str, Any]

_REFUSE_S = 5.0  # the default of Filters.refuse_seconds


@dataclass(frozen=True, slots=True)
class Offer:
    """Resources of an agent that wait for an answer."""

    id: str
    framework: Framework
    agent_id: str
    role: str
    resources: Resources
    at_s: float


class Offers:
    """The offers that wait for an answer."""

    def __init__(self, master_id: str) -> None:
        self._master_id = master_id
        self._offers: dict[str, Offer] = {}
        self._made = 0

    def allocate(self, agents: Iterable[Agent], frameworks: Mapping[str, Framework]) -> None:
        """Offer what is left, first to the framework with the fewest cpus."""
        now_s = monotonic_s()
        made: dict[str, list[Json]] = {}
        asking = [each for each in frameworks.values() if each.subscription is not None]
        asking.sort(key=lambda each: (sum(task.resources.total("cpus") for task in each.tasks.values()), each.id))
        for agent in agents:
            free = agent.total - used(agent, frameworks.values())
            for offer in self._offers.values():
                if offer.agent_id == agent.id:
                    free -= offer.resources
            for framework, role in [(each, role) for each in asking for role in each.roles]:
                mine = free.for_role(role)
                if mine.is_offered() and framework.wants(role, agent.id, mine, now_s):
                    free -= mine
                    made.setdefault(framework.id, []).append(self._make(framework, agent, role, mine))
        for framework_id, offers in made.items():
            frameworks[framework_id].send({"type": "OFFERS", "offers": {"offers": offers}})

    def take(self, framework: Framework, ids: Iterable[str]) -> tuple[list[Offer], str]:
        """Take offers back; return them, and what is wrong with one of the ids."""
        error, found = "", []
        for offer_id in ids:
            offer = self._offers.get(offer_id)
            if offer is None or offer.framework is not framework:
                error = f"Offer {offer_id} is no longer valid"
            else:
                found.append(self._offers.pop(offer_id))
        if len({each.agent_id for each in found}) > 1 and not error:
            last = found[-1]
            error = f"Aggregated offers must belong to one single agent. Offer {last.id} uses agent {last.agent_id}"
        return found, error

    def decline(self, framework: Framework, ids: Iterable[str], filters: Json) -> None:
        """Take offers back, and do not make them again for a time; an unknown one is left out."""
        for offer_id in ids:
            for offer in self.take(framework, [offer_id])[0]:
                refuse(offer, offer.resources, filters)

    def forget(self, framework: Framework) -> None:
        """Take back all offers of a framework that is not there."""
        for each in [each for each in self._offers.values() if each.framework is framework]:
            del self._offers[each.id]

    def rescind(self, agent_id: str) -> None:
        """Take back all offers of an agent, and tell the frameworks."""
        self._rescind(each for each in self._offers.values() if each.agent_id == agent_id)

    def rescind_old(self, timeout_s: float) -> None:
        """Take back the offers that have waited for that time, and tell the frameworks; 0 is no limit."""
        at_s = monotonic_s() - timeout_s
        self._rescind(each for each in self._offers.values() if timeout_s and each.at_s <= at_s)

    def _rescind(self, offers: Iterable[Offer]) -> None:
        for each in list(offers):
            del self._offers[each.id]
            each.framework.send({"type": "RESCIND", "rescind": {"offer_id": {"value": each.id}}})

    def _make(self, framework: Framework, agent: Agent, role: str, resources: Resources) -> Json:
        offer = Offer(f"{self._master_id}-O{self._made}", framework, agent.id, role, resources, monotonic_s())
        self._made += 1
        self._offers[offer.id] = offer
        return {
            "id": {"value": offer.id},
            "framework_id": {"value": framework.id},
            "agent_id": {"value": agent.id},
            "hostname": agent.hostname,
            "url": {"scheme": "http", "address": agent.address, "path": "/slave(1)", "query": []},
            "resources": resources.messages(role, refined=framework.has("RESERVATION_REFINEMENT")),
            "attributes": agent.attributes,
            "allocation_info": {"role": role},
        }


def refuse(offer: Offer, left: Resources, filters: Json) -> None:
    """Do not offer the unused part of an offer again for ``refuse_seconds``."""
    refuse_s = float(filters.get("refuse_seconds", _REFUSE_S))
    if left and refuse_s > 0:
        offer.framework.refuse(offer.role, offer.agent_id, left, monotonic_s() + refuse_s)


def used(agent: Agent, frameworks: Iterable[Framework]) -> Resources:
    """Return what the tasks of an agent have."""
    tasks = (task for each in frameworks for task in each.tasks.values() if not task.unreachable)
    found = (each for each in tasks if each.agent_id == agent.id and each.status["state"] not in TERMINAL)
    return sum((each.resources for each in found), Resources())
