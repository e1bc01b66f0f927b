"""Offers are given to containers so that each fits, nothing is given twice, and containers are spread."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any
from urllib.parse import urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_mesos.constraints import Place
from heron_scheduler_mesos.offers import APART_S, Offer, Waiting, decide, decode_offers, told


def scalar(name: str, value: float, **more: object) -> Json:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, **more}


def offer(host: str, cpus: float = 4.0, mem: float = 4096.0, **attributes: str) -> Offer:
    place = Place(host, attributes)
    return Offer(
        f"offer-{host}", f"id-{host}", place, f"http://{host}:5051", (scalar("cpus", cpus), scalar("mem", mem))
    )


_AMOUNTS = st.integers(0, 4000).map(lambda each: each / 1000)
_OFFERS = st.lists(st.tuples(_AMOUNTS, st.integers(0, 4096), st.sampled_from("ab")), max_size=5).map(
    lambda found: [offer(f"h{n}", cpus, mem, rack=rack) for n, (cpus, mem, rack) in enumerate(found)]
)
_WAITING = st.lists(st.tuples(_AMOUNTS, st.integers(1, 2048), st.booleans()), max_size=6).map(
    lambda found: [Waiting(n, cpu, mem, manager=manager) for n, (cpu, mem, manager) in enumerate(found)]
)


@settings(max_examples=30)
@given(_WAITING, _OFFERS, st.sampled_from([[], [("hostname", "UNIQUE")], [("rack", "MAX_PER", "2")]]))
def test_what_is_taken_was_offered_and_is_what_is_needed(
    waiting: list[Waiting], offers: list[Offer], constraints: list[tuple[str, ...]]
) -> None:
    """Each container is launched or refused, each offer used or declined, and no offer gives more than it has."""
    decision = decide(waiting, offers, [], constraints)
    launched = [each.container_id for each in decision.launches]
    assert Counter([*launched, *decision.refusals]) == Counter(each.container_id for each in waiting)
    used = {each.offer.offer_id for each in decision.launches}
    assert Counter([*used, *decision.declined]) == Counter(each.offer_id for each in offers)
    given_away: dict[tuple[str, Any], int] = defaultdict(int)
    for launch in decision.launches:
        for each in launch.resources:
            given_away[launch.offer.offer_id, each["name"]] += thousandths(each)
        need = next(each for each in waiting if each.container_id == launch.container_id)
        assert {str(each["name"]): thousandths(each) for each in launch.resources} == need.needs
    for one in offers:
        for each in one.resources:
            assert given_away[one.offer_id, each["name"]] <= thousandths(each)
    hosts = Counter(each.offer.place.host for each in decision.launches)
    racks = Counter(each.offer.place.attributes["rack"] for each in decision.launches)
    if constraints:
        assert max(hosts.values(), default=0) <= 1 if constraints[0][1] == "UNIQUE" else max([0, *racks.values()]) <= 2


def thousandths(resource: Json) -> int:
    found = resource["scalar"]
    assert isinstance(found, dict)
    return round(float(found["value"]) * 1000)


@settings(max_examples=30)
@given(_WAITING, _OFFERS)
def test_a_refused_container_fits_nowhere(waiting: list[Waiting], offers: list[Offer]) -> None:
    """A container that is refused needs more than each single offer had, or others have taken it."""
    decision = decide(waiting, offers, [], [])
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for launch in decision.launches:
        for each in launch.resources:
            taken[launch.offer.offer_id][str(each["name"])] += thousandths(each)
    for need in waiting:
        if need.container_id in decision.refusals and not need.manager:
            for one in offers:
                left = {str(e["name"]): thousandths(e) - taken[one.offer_id][str(e["name"])] for e in one.resources}
                assert any(left[name] < amount for name, amount in need.needs.items())


def test_several_containers_share_an_offer_and_spread_over_agents() -> None:
    """The agent with the fewest containers of the job is next, running ones included."""
    waiting = [Waiting(each, 1.0, 512) for each in range(1, 5)]
    decision = decide(waiting, [offer("a"), offer("b"), offer("c")], [Place("a"), Place("a")], [])
    assert Counter(each.offer.place.host for each in decision.launches) == {"b": 2, "c": 2}
    assert decision.declined == ("offer-a",)


def test_topology_managers_take_different_agents_or_wait_a_while() -> None:
    """The standby must survive the agent of the leader; after some seconds a shared agent is better than none."""
    managers = [Waiting(0, 1.0, 512, manager=True), Waiting(1, 1.0, 512, manager=True)]
    spread = decide(managers, [offer("a"), offer("b")], [], [])
    assert {each.offer.place.host for each in spread.launches} == {"a", "b"}
    alone = decide(managers, [offer("a")], [], [])
    assert [each.container_id for each in alone.launches] == [0]
    assert alone.refusals == {1: {"a": "it has another topology manager"}}
    late = [Waiting(1, 1.0, 512, manager=True, waited_s=APART_S)]
    assert len(decide(late, [offer("a")], [Place("a", manager=True)], []).launches) == 1


def test_reserved_resources_are_taken_first_and_returned_as_they_came() -> None:
    """Mesos refuses a launch whose resources do not name their reservation."""
    reservation = {"reservations": [{"type": "STATIC", "role": "heron"}], "allocation_info": {"role": "heron"}}
    found = decode_offers(
        {
            "offers": {
                "offers": [
                    {
                        "id": {"value": "o1"},
                        "agent_id": {"value": "s1"},
                        "hostname": "a.example",
                        "url": {
                            "scheme": "https",
                            "address": {"hostname": "a.example", "ip": "10.0.0.1", "port": 5052},
                        },
                        "attributes": [
                            {"name": "rack", "type": "TEXT", "text": {"value": "r1"}},
                            {"name": "level", "type": "SCALAR", "scalar": {"value": 2.0}},
                        ],
                        "resources": [
                            scalar("cpus", 2.0),
                            scalar("cpus", 0.5, **reservation),
                            scalar("mem", 1024.0),
                            scalar("mem", 512.0, revocable={}),
                            scalar("disk", 100.0, disk={"persistence": {"id": "p"}}),
                            {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 1, "end": 9}]}},
                        ],
                    }
                ]
            }
        }
    )
    assert [(each.agent, each.place) for each in found] == [
        ("https://a.example:5052", Place("a.example", {"rack": "r1", "level": "2"}))
    ]
    (launch,) = decide([Waiting(1, 1.25, 1024)], found, [], []).launches
    assert launch.resources == (scalar("cpus", 0.5, **reservation), scalar("cpus", 0.75), scalar("mem", 1024.0))
    assert decide([Waiting(1, 1.0, 1025)], found, [], []).refusals == {1: {"a.example": "it offers 1024 of 1025 mem"}}


def test_the_address_of_an_agent_may_be_of_ipv6() -> None:
    """A URL has it in brackets; the host of a container is without them."""
    address = {"ip": "fd00::5", "port": 5051}
    found = {"id": {"value": "o1"}, "agent_id": {"value": "s1"}, "hostname": "a", "url": {"address": address}}
    (decoded,) = decode_offers({"offers": [found]})
    assert decoded.agent == "http://[fd00::5]:5051"
    assert urlsplit(decoded.agent).hostname == "fd00::5"


def test_the_reason_has_what_is_needed_and_what_was_offered() -> None:
    """`heron status` shows it to a person who does not know the cluster."""
    need = Waiting(3, 2.5, 4096)
    refusals = decide([need], [offer("a", 1.0), offer("b", 8.0, 100.0)], [], []).refusals[3]
    text = "needs 2.5 cpus, 4096 mem; a: it offers 1 of 2.5 cpus; b: it offers 100 of 4096 mem"
    assert told(need, refusals) == text
    assert told(need, {}).endswith("no agent has offered anything")
    assert told(need, dict.fromkeys("abcde", "it is full")).endswith("c: it is full; and 2 other agents")
