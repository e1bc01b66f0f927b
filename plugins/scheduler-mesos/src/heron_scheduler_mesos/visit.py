"""A short subscription: to see what a master offers, and to end a framework whose supervisor has died."""

from __future__ import annotations

import select

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_mesos.framework import error_message, is_gone
from heron_scheduler_mesos.master_link import LinkLost, MasterLink, framework_id
from heron_scheduler_mesos.mesos_access import MesosAccess
from heron_scheduler_mesos.offers import Offer, decode_offers
from heron_scheduler_mesos.tasks import call

__all__ = ["visit"]

_CLOSE_S = 3.0


def visit(access: MesosAccess, framework: Json, limit_s: float, offers_s: float = 0.0) -> tuple[str, tuple[Offer, ...]]:
    """Subscribe, wait up to `offers_s` seconds for offers, and tear the framework down.

    Return the master and the offers. A framework that Mesos has removed already counts as torn down.

    Raises:
        SchedulerError: when no master takes the subscription within the limit, or the framework may be left.
    """
    link = MasterLink(access, limit_s)
    offers: tuple[Offer, ...] = ()
    mine, ends_at_s = "", monotonic_s() + limit_s
    try:
        link.subscribe(framework)
        while not offers and (left_s := ends_at_s - monotonic_s()) > 0:
            select.select([link], [], [], left_s)
            for event in link.receive():
                if isinstance(event, LinkLost):
                    raise SchedulerError(event.reason)
                if event.get("type") == "ERROR":
                    said = error_message(event)
                    if "id" in framework and is_gone(said):
                        return link.leader, ()
                    why = f"{said}; correct scheduler.role, or grant the rights"
                    runs = ", and its containers may run on" if "id" in framework else ""
                    msg = f"mesos at {link.leader} refuses the framework{runs}: {why}"
                    raise SchedulerError(msg)
                if event.get("type") == "SUBSCRIBED":
                    mine, ends_at_s = framework_id(event), monotonic_s() + offers_s
                offers += decode_offers(event)
    finally:
        if mine:
            link.call({"framework_id": {"value": mine}, **call("TEARDOWN")})
        ended = link.close(_CLOSE_S)
    if not mine or not ended:
        what = f"framework {mine} may be left" if mine else "no master answers"
        msg = (
            f"mesos at {', '.join(access.masters)}: {what} after {limit_s:g} s; correct scheduler.masters, or try again"
        )
        raise SchedulerError(msg)
    return link.leader, offers
