"""Which containers take which offers, and what the others lack. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heron_scheduler_kit.managed.rest_api import Json, fields, items
from heron_scheduler_mesos.constraints import Constraint, Place, breach

__all__ = ["APART_S", "Decision", "Launch", "Offer", "Waiting", "decide", "decode_offers", "told"]

APART_S = 5.0
"""How long a topology manager waits for an agent without another one."""

_SHOWN = 3
_NAMES = ("cpus", "mem", "disk")
_SPECIAL = ("revocable", "shared", "disk", "provider_id")  # may be taken back, or belong to a volume


@dataclass(frozen=True, slots=True)
class Offer:
    """What an agent offers: scalar resources as Mesos describes them. `agent` is the URL of the agent."""

    offer_id: str
    agent_id: str
    place: Place
    agent: str
    resources: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container without a task: what it needs, in cores and MiB, and for how many seconds it has waited.

    `manager`: its topology manager should be on another agent than the others.
    """

    container_id: int
    cpu: float
    memory_mb: int
    disk_mb: int = 0
    manager: bool = False
    waited_s: float = 0.0

    @property
    def needs(self) -> Mapping[str, int]:
        """Thousandths by the name of the resource; Mesos counts in them too."""
        wanted = zip(_NAMES, (self.cpu, self.memory_mb, self.disk_mb), strict=True)
        return {name: round(amount * 1000) for name, amount in wanted if amount}


@dataclass(frozen=True, slots=True)
class Launch:
    """A container takes these resources of an offer."""

    container_id: int
    offer: Offer
    resources: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """`declined` are offers that no container takes. `refusals` says for each other container why, by agent."""

    launches: tuple[Launch, ...]
    declined: tuple[str, ...]
    refusals: Mapping[int, Mapping[str, str]]


def decode_offers(event: Json) -> tuple[Offer, ...]:
    """Return the offers of an event of Mesos. Those without an id or an agent are left out."""
    found = event.get("offers")
    offers = (_offer(each) for each in items(found if isinstance(found, list) else fields(found).get("offers")))
    return tuple(each for each in offers if each.offer_id and each.agent_id)


def decide(
    waiting: Iterable[Waiting], offers: Sequence[Offer], taken: Sequence[Place], constraints: Sequence[Constraint]
) -> Decision:
    """Give offers to containers; those with topology managers and the large ones choose first.

    A container takes the agent that has the fewest containers of the job, `taken` and chosen here.
    """
    left = {each.offer_id: each.resources for each in offers}
    places = list(taken)
    launches: list[Launch] = []
    refusals: dict[int, Mapping[str, str]] = {}
    for need in sorted(waiting, key=lambda each: (not each.manager, -each.memory_mb, -each.cpu, each.container_id)):
        refused: dict[str, str] = {}
        choices: list[tuple[bool, int, str, Launch, tuple[Json, ...]]] = []
        for offer in offers:
            split = _split(left[offer.offer_id], need.needs)
            if why := breach(constraints, offer.place, places) or _shortage(left[offer.offer_id], need.needs):
                refused[offer.place.host] = why
            else:
                beside = [each for each in places if each.host == offer.place.host]
                shared = need.manager and any(each.manager for each in beside)
                launch = Launch(need.container_id, offer, split[0])
                choices.append((shared, len(beside), offer.offer_id, launch, split[1]))
        best = min(choices, key=lambda each: each[:3], default=None)
        if best is None:
            refusals[need.container_id] = refused
        elif best[0] and need.waited_s < APART_S:
            refusals[need.container_id] = {best[3].offer.place.host: "it has another topology manager"}
        else:
            launches.append(best[3])
            left[best[2]] = best[4]
            host = best[3].offer.place
            places.append(Place(host.host, host.attributes, need.manager))
    used = {each.offer.offer_id for each in launches}
    return Decision(tuple(launches), tuple(each for each in left if each not in used), refusals)


def told(need: Waiting, refusals: Mapping[str, str]) -> str:
    """Return what a container needs, and what was wrong with the offers of agents."""
    wants = ", ".join(f"{amount / 1000:g} {name}" for name, amount in need.needs.items())
    shown = [f"{host}: {why}" for host, why in list(refusals.items())[:_SHOWN]]
    more = [f"and {len(refusals) - _SHOWN} other agents"] if len(refusals) > _SHOWN else []
    return f"needs {wants}; {'; '.join(shown + more) or 'no agent has offered anything'}"


def _offer(found: Json) -> Offer:
    host = str(found.get("hostname") or "")
    url, attributes = fields(found.get("url")), {}
    address = fields(url.get("address"))
    at = str(address.get("hostname") or address.get("ip") or host)
    at = f"[{at}]" if ":" in at and not at.startswith("[") else at  # IPv6
    for each in items(found.get("attributes")):
        for kind in ("text", "scalar"):
            if kind in each:
                value = fields(each[kind]).get("value")
                attributes[str(each.get("name"))] = f"{value:g}" if isinstance(value, float) else str(value)
    usable = [
        each
        for each in items(found.get("resources"))
        if each.get("name") in _NAMES and "scalar" in each and not any(name in each for name in _SPECIAL)
    ]
    return Offer(
        str(fields(found.get("id")).get("value") or ""),
        str(fields(found.get("agent_id")).get("value") or ""),
        Place(host, attributes),
        f"{url.get('scheme') or 'http'}://{at}:{address.get('port') or 5051}",
        tuple(sorted(usable, key=_is_free)),
    )


def _is_free(resource: Json) -> bool:
    """Return whether everybody gets this resource; a role uses up what is reserved for it first."""
    return not resource.get("reservations") and resource.get("role") in {None, "*"}


def _amount(resource: Json) -> int:
    return round(float(str(fields(resource["scalar"]).get("value") or 0)) * 1000)


def _split(resources: Sequence[Json], needs: Mapping[str, int]) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """Return which part of resources to take, and what is left."""
    missing = dict(needs)
    taken: list[Json] = []
    rest: list[Json] = []
    for each in resources:
        name, amount = str(each["name"]), _amount(each)
        part = min(amount, missing.get(name, 0))
        missing[name] = missing.get(name, 0) - part
        for share, target in ((part, taken), (amount - part, rest)):
            if share:
                target.append({**each, "scalar": {"value": share / 1000}})
    return tuple(taken), tuple(rest)


def _shortage(resources: Sequence[Json], needs: Mapping[str, int]) -> str:
    have = {name: sum(_amount(each) for each in resources if each["name"] == name) for name in needs}
    short = [f"{have[name] / 1000:g} of {need / 1000:g} {name}" for name, need in needs.items() if have[name] < need]
    return f"it offers {', '.join(short)}" if short else ""
